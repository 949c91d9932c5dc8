#pragma once
// Operations that end twice: with the transport's outcome (their memory is free again) and with the peer's answer
// (their result). Those that wait for an answer are kept by peer, so that they end with it.

#include <cstdint>

#include "engine/message_context.hpp"
#include "transport/by_peer.hpp"

namespace fairlead::engine {

class Awaited {
 public:
  explicit Awaited(MessageContext& context)
      : context_(context), waiting_(static_cast<std::uint32_t>(context.options.get(Option::peers_max))) {}

  void add(std::uint32_t slot, base::Instant now);
  /// Returns whether both the outcome and the answer have arrived; the operation is then removed.
  bool is_over(std::uint32_t slot);
  /// Returns the next operation that waited for the lost peer, with its status set; kNone if none is left. The caller
  /// ends the operation.
  std::uint32_t take_lost(link::PeerHandle peer, Status status);
  bool has(std::uint32_t peer_slot);
  /// Returns when to ask peers that owe answers whether they still exist.
  base::Instant next_deadline() const { return ask_at_; }
  void ask(base::Instant now);

 private:
  base::Duration ask_after() const { return context_.give_up_after() / 8; }

  MessageContext& context_;
  transport::ByPeer<OperationChain> waiting_;
  base::Instant ask_at_ = base::kNever;
};

}  // namespace fairlead::engine
