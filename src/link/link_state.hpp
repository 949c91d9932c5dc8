#pragma once
// The inside of the link: its parts. Each part uses only parts listed above it.
//
//   agenda, news, timeouts      work lists, outcomes and notices for the engine, delays (link_context.hpp)
//   grants, strangers, sizes,   each has one subject, and uses no other part
//   queues, shorts, acks, places, greetings, keys
//   sessions                    opens and ends sessions; only this part gives a peer up
//   trains                      what is sent now: segments from source, sealed by sealer
//   receiver, expiry            received datagrams and timers; they call the other parts

#include <cstdint>
#include <optional>

#include "link/expiry.hpp"
#include "link/link.hpp"
#include "link/receiver.hpp"
#include "link/sessions.hpp"
#include "link/short_sends.hpp"
#include "link/trains.hpp"

namespace fairlead::link {

/// Clamps every option to its range.
LinkOptions in_range(LinkOptions options);

struct Link::State {
  State(const LinkOptions& options, std::uint64_t epoch, std::uint64_t seed, std::optional<SealSettings> its_sealing);
  /// Queues a message; begin() then opens the session if need be, and lets the peer send.
  Status take(Peer& peer, const Outgoing& message, Reference& reference);
  void begin(Peer& peer, base::Instant now);

  std::optional<SealSettings> sealing;
  TokenSource secrets;  // source of this link's own secret keys
  LinkContext context;
  PeerTable peers;
  Grants grants{context};
  Strangers strangers{context, secrets};
  DatagramSizes sizes{context};
  SendQueues queues{context};
  ShortSends shorts{context, queues};
  Acks acks{context};
  Places places{context, peers, secrets};
  Greetings greetings;
  KeyChanges keys{context, sealing, secrets};
  Sessions sessions{context, {peers, places, greetings, strangers, queues, grants, sizes, acks}, sealing, secrets};
  SegmentSource source{context};
  TrainSealer sealer{context, keys};
  Trains trains{context, {strangers, greetings, grants, source, sealer}};
  Receiver receiver{context, {peers, strangers, grants, sizes, acks, keys, sessions}};
  Expiry expiry{context, {places, grants, sizes, acks, keys, sessions}};
};

}  // namespace fairlead::link
