#pragma once
// The round trip to a peer, smoothed as RFC 6298 does it. Samples come from echoed timestamps less the time they waited
// at the peer, so a resent segment gives a true one too.

#include "base/time.hpp"

namespace fairlead::link {

class RoundTrip {
 public:
  void add(base::Duration sample);

  bool is_known() const { return latest_ != base::Duration::zero(); }
  base::Duration smoothed() const { return smoothed_; }
  base::Duration variation() const { return variation_; }
  base::Duration latest() const { return latest_; }
  base::Duration least() const { return least_; }

 private:
  base::Duration smoothed_{}, variation_{}, latest_{}, least_{};
};

}  // namespace fairlead::link
