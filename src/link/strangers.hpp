#pragma once
// Answers to strangers: resets to senders of segments without a known session, refusals, and cookies for hellos that
// have not shown one. Anybody can provoke an answer with a forged address. So no answer is longer than the datagram
// that provoked it, and answers have a budget (answer_budget.hpp). Only the answer itself is stored, until it is sent.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/fifo.hpp"
#include "link/answer_budget.hpp"
#include "link/cookie_jar.hpp"
#include "link/link_context.hpp"
#include "link/stray.hpp"
#include "link/token_source.hpp"

namespace fairlead::link {

class Strangers {
 public:
  Strangers(LinkContext& context, TokenSource& secrets);

  void answer_with_reset(const base::SocketAddress& to, std::uint64_t token, base::Instant now);
  void ask_for_cookie(const base::SocketAddress& from, const wire::Frame& hello, base::Instant now);
  /// Returns whether this hello shows a cookie that this side made for its sender.
  bool is_proven(const base::SocketAddress& from, const wire::Frame& hello, base::Instant now) {
    return cookies_.is_ours(hello.header.token, from, hello.payload, now);
  }
  /// Queues an answer, unless the queue is full or the budget is used up.
  void answer(const Stray& answer, base::Instant now);
  /// Queues a segment without charging the budget: a close, or one that the path did not take.
  void put(const Stray& stray) { strays_.push(stray); }
  std::optional<Stray> take() { return strays_.take(); }
  /// Counter of the segments of this kind sent.
  std::uint64_t& sent_count(wire::Kind stray);

  bool is_empty() const { return strays_.empty(); }
  bool is_full() const { return strays_.size() >= kStraysMax; }
  bool has_room_for(std::size_t count) noexcept { return strays_.has_room(count); }

 private:
  static constexpr std::size_t kStraysMax = 256;  // when so many wait, further answers are dropped
  LinkContext& context_;
  CookieJar cookies_;
  AnswerBudget budget_;
  base::Fifo<Stray> strays_;
};

}  // namespace fairlead::link
