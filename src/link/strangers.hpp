#pragma once
// What those hear who are no peers: a sender whose session we do not know, so that it learns that the session is gone;
// one who greets us and has not shown that it hears us. Anybody may provoke an answer in anybody's name. So none is
// longer than what provoked it, they have a budget (answer_budget.hpp), and nothing is kept but the answer until it is
// out.

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
  /// Whether this hello shows a cookie of ours, made for its sender.
  bool is_proven(const base::SocketAddress& from, const wire::Frame& hello, base::Instant now) {
    return cookies_.is_ours(hello.header.token, from, hello.payload, now);
  }
  /// If there is a place for it and the budget lets it go.
  void answer(const Stray& answer, base::Instant now);
  /// Whatever the budget: a close, or one that was not taken.
  void put(const Stray& stray) { strays_.push(stray); }
  std::optional<Stray> take() { return strays_.take(); }
  /// How many of this kind were sent.
  std::uint64_t& sent_count(wire::Kind stray);

  bool is_empty() const { return strays_.empty(); }
  bool is_full() const { return strays_.size() >= kStraysMax; }
  bool has_room_for(std::size_t count) noexcept { return strays_.has_room(count); }

 private:
  static constexpr std::size_t kStraysMax = 256;  // beyond it no answer is taken in
  LinkContext& context_;
  CookieJar cookies_;
  AnswerBudget budget_;
  base::Fifo<Stray> strays_;
};

}  // namespace fairlead::link
