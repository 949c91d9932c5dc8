#include "onesided/publisher.hpp"

namespace fairlead::onesided {

void Publisher::publish_pair(std::uint32_t place, const SharedPair& pair) {
  if (!is_seen()) return;
  own_.tables->pairs[place].publish(pair, publications_);
  if (own_.records != nullptr) own_.records->pairs[place].publish(pair, publications_);
}

void Publisher::publish_region(std::uint32_t slot, const SharedRegion& inside, const SharedRegion& whole) {
  if (!is_seen() || slot >= SharedTables::kRegions) return;  // peers reach the last slot by messages
  own_.tables->regions[slot].publish(inside, publications_);
  if (own_.records != nullptr) own_.records->regions[slot].publish(whole, publications_);
}

}  // namespace fairlead::onesided
