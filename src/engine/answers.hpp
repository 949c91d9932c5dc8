#pragma once
// Answers to peers: the result of a put, the bytes of a get, the return of a loan. Answers that find no room wait, per
// peer in order, and each pass retries them.

#include <cstdint>

#include "engine/message_context.hpp"
#include "transport/retry_queue.hpp"

namespace fairlead::engine {

class Answers {
 public:
  explicit Answers(MessageContext& context) : context_(context) {}

  /// `exposure` names the exposed memory that is the payload, or is 0.
  void answer(link::PeerHandle peer, const wire::Envelope& envelope, std::uint64_t exposure, base::Instant now);
  /// Reports that a transfer succeeded (ok) or failed.
  void tell_done(link::PeerHandle peer, std::uint64_t cookie, Status status, base::Instant now);
  void retry(base::Instant now);
  /// Drops the answers to a lost peer.
  void drop(link::PeerHandle peer, Status status, base::Instant now);
  /// While held, answers with a payload wait, so that none is in transit when this engine is handed over. Others can be
  /// handed over on their way.
  void hold(bool is_held) { is_held_ = is_held; }
  bool is_held() const { return is_held_; }
  bool is_empty() const { return waiting_.is_empty(); }
  bool is_any_for(link::PeerHandle peer) const { return waiting_.has(peer); }
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
