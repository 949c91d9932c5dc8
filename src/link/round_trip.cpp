#include "link/round_trip.hpp"

#include <algorithm>

namespace fairlead::link {

void RoundTrip::add(base::Duration sample) {
  sample = std::max(sample, base::Duration(1));
  if (!is_known()) {
    smoothed_ = sample;
    variation_ = sample / 2;
    least_ = sample;
  } else {
    const base::Duration difference = sample > smoothed_ ? sample - smoothed_ : smoothed_ - sample;
    variation_ += (difference - variation_) / 4;
    smoothed_ += (sample - smoothed_) / 8;
    least_ = std::min(least_, sample);
  }
  latest_ = sample;
}

}  // namespace fairlead::link
