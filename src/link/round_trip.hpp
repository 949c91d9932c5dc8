#pragma once
// The round-trip time to a peer, smoothed as in RFC 6298. Samples come from echoed timestamps, less the time that they
// waited at the peer. So resent segments give correct samples too.

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
