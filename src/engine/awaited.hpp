#pragma once
// Operations with two ends: the transport's outcome (their memory is free again) and the peer's answer (what became of
// them). Those that wait for the answer are known by peer, so that they end with it.

#include <cstdint>

#include "engine/message_context.hpp"
#include "transport/by_peer.hpp"

namespace fairlead::engine {

class Awaited {
 public:
  explicit Awaited(MessageContext& context)
      : context_(context), waiting_(static_cast<std::uint32_t>(context.options.get(Option::peers_max))) {}

  void add(std::uint32_t slot, base::Instant now);
  /// Whether both ends have come; then it is not awaited any more.
  bool is_over(std::uint32_t slot);
  /// One that waits for a peer that is lost, which has ended it; kNone if there is none left.
  std::uint32_t take_lost(link::PeerHandle peer, Status status);
  bool has(std::uint32_t peer_slot);
  /// When to ask peers that owe answers whether they are still there.
  base::Instant next_deadline() const { return ask_at_; }
  void ask(base::Instant now);

 private:
  base::Duration ask_after() const { return context_.give_up_after() / 8; }

  MessageContext& context_;
  transport::ByPeer<OperationChain> waiting_;
  base::Instant ask_at_ = base::kNever;
};

}  // namespace fairlead::engine
