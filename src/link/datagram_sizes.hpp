#pragma once
// How long the datagrams to a peer may be: what our path and the peer take, and what probes find (path_mtu.hpp). What
// has a sequence already and is too long goes again, in parts (trains_parts.cpp).

#include <cstdint>

#include "base/time.hpp"
#include "link/link_context.hpp"
#include "wire/segment.hpp"

namespace fairlead::link {

class DatagramSizes {
 public:
  explicit DatagramSizes(LinkContext& context) : context_(context) {}

  /// From what the path to it carries, as it is known now.
  void set_goal(Peer& peer, base::Instant now);
  /// What is cut from now on has the size that is believed.
  void follow(Peer& peer, base::Instant now);
  /// The time of a probe, or of the search for the size, has come.
  void on_timer(Peer& peer, base::Instant now);
  void on_probe(Peer& peer, const wire::Frame& frame);
  void on_probe_answer(Peer& peer, const wire::Frame& frame, base::Instant now);

 private:
  LinkContext& context_;
};

}  // namespace fairlead::link
