#pragma once
// The length of datagrams to a peer: the limits of the local path and of the peer, and the result of path MTU probes
// (path_mtu.hpp). A segment that is too long by now and has its sequence already is resent in parts (trains_parts.cpp).

#include <cstdint>

#include "base/time.hpp"
#include "link/link_context.hpp"
#include "wire/segment.hpp"

namespace fairlead::link {

class DatagramSizes {
 public:
  explicit DatagramSizes(LinkContext& context) : context_(context) {}

  /// Sets the upper limit, from the path's known MTU and the peer's announced maximum.
  void set_goal(Peer& peer, base::Instant now);
  /// Applies the size that PathMtu has settled on to segments cut from now on, and queues longer ones in flight for
  /// resending.
  void follow(Peer& peer, base::Instant now);
  /// Runs the probe timer: sends the next probes, or begins a new search.
  void on_timer(Peer& peer, base::Instant now);
  void on_probe(Peer& peer, const wire::Frame& frame);
  void on_probe_answer(Peer& peer, const wire::Frame& frame, base::Instant now);

 private:
  LinkContext& context_;
};

}  // namespace fairlead::link
