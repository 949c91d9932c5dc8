#pragma once
// The link from inside: what its parts are, each below those that use it.
//
//   agenda, news, timeouts      what is to be done, what the engine is told, when what is done again (link_context.hpp)
//   grants, strangers, sizes,   each knows one thing of a peer, or of those who are none, and no other part
//   queues, acks, places, greetings, keys
//   sessions                    open and end; the only one that loses a peer
//   trains                      what goes out now, from source, sealed by sealer
//   receiver, expiry            what comes in, and what the time brings: they call the others

#include <cstdint>
#include <optional>

#include "link/expiry.hpp"
#include "link/link.hpp"
#include "link/receiver.hpp"
#include "link/sessions.hpp"
#include "link/trains.hpp"

namespace fairlead::link {

/// Brings every option into its range.
LinkOptions in_range(LinkOptions options);

struct Link::State {
  State(const LinkOptions& options, std::uint64_t epoch, std::uint64_t seed, std::optional<SealSettings> its_sealing);

  std::optional<SealSettings> sealing;
  TokenSource secrets;  // of our own keys
  LinkContext context;
  PeerTable peers;
  Grants grants{context};
  Strangers strangers{context, secrets};
  DatagramSizes sizes{context};
  SendQueues queues{context};
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
