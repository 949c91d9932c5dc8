#pragma once
// What we answer to peers: that a put is done, or why not; the bytes of a get; that a loan is given back. What finds no
// room waits, each peer's in order, and is tried in each pass.

#include <cstdint>

#include "engine/message_context.hpp"
#include "transport/retry_queue.hpp"

namespace fairlead::engine {

class Answers {
 public:
  explicit Answers(MessageContext& context) : context_(context) {}

  /// `exposure`: the name of the exposed memory that is the payload, or 0.
  void answer(link::PeerHandle peer, const wire::Envelope& envelope, std::uint64_t exposure, base::Instant now);
  /// That a transfer is done (ok), or is not.
  void tell_done(link::PeerHandle peer, std::uint64_t cookie, Status status, base::Instant now);
  void retry(base::Instant now);
  /// The peer is lost.
  void drop(link::PeerHandle peer, Status status, base::Instant now);
  /// Held: all of them wait, so that nothing new is on its way when this engine is handed over.
  void hold(bool is_held) { is_held_ = is_held; }
  bool is_empty() const { return waiting_.is_empty(); }
  std::size_t size() const { return waiting_.size(); }

 private:
  friend class MessagesHandover;

  struct Waiting {
    wire::Envelope envelope;
    std::uint64_t exposure = 0;
  };

  Status submit(link::PeerHandle peer, const Waiting& answer, base::Instant now);
  void end(std::uint64_t exposure, Status status, base::Instant now);

  MessageContext& context_;
  transport::RetryQueue<Waiting> waiting_;
  bool is_held_ = false;
};

}  // namespace fairlead::engine
