#include "link/token_source.hpp"

namespace fairlead::link {

std::uint64_t TokenSource::next() {
  return base::SipHash(key_).add(counter_++).value();
}

}  // namespace fairlead::link
