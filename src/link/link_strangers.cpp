// What those hear who are no peers: a sender whose session we do not know, so that it learns that the session is gone;
// one who greets us and has not shown that it hears us. Anybody may provoke an answer in anybody's name. So none is
// longer than what provoked it, they have a budget (answer_budget.hpp), and nothing is kept but the answer until it is
// out.

#include "link/link_state.hpp"

namespace fairlead::link {

void Link::State::answer_with_reset(const base::SocketAddress& to, std::uint64_t token, base::Instant now) {
  answer_stranger({.to = to, .kind = wire::Kind::reset, .token = token}, now);
}

void Link::State::ask_for_cookie(const base::SocketAddress& from, const wire::Frame& hello, base::Instant now) {
  const wire::Hello theirs = wire::read_hello(hello.payload);
  answer_stranger({.to = from,
                   .kind = wire::Kind::hello_retry,
                   .slot = theirs.slot,
                   .token = theirs.token,
                   .cookie = cookies.bake(from, hello.payload, now)},
                  now);
}

void Link::State::answer_stranger(const Stray& answer, base::Instant now) {
  if (strays.size() >= kStraysMax || !answer_budget.take(answer.to, now)) {
    ++counters.answers_withheld;
    return;
  }
  strays.push(answer);
}

bool Link::State::serve_stray(base::Instant now, Train& train) {
  const auto stray = strays.pop();
  was_stray = stray.has_value();
  if (!stray) return false;
  wire::Header header;
  header.kind = stray->kind;
  header.flags = stray->flags;
  header.slot = stray->slot;
  header.token = stray->token;
  header.ack = stray->ack;
  header.ack_bitmap = stray->ack_bitmap;
  header.timestamp = wire::to_ticks(now);
  std::array<std::byte, wire::kRetryBytes> cookie;
  wire::encode_retry(stray->cookie, cookie.data());
  const bool is_retry = stray->kind == wire::Kind::hello_retry;
  send_control(stray->to, header, std::span(cookie).first(is_retry ? cookie.size() : 0), train);
  handed_out.what = HandedOut::What::stray;
  handed_out.stray = *stray;
  ++sent_count(stray->kind);
  return true;
}

std::uint64_t& Link::State::sent_count(wire::Kind stray) {
  if (stray == wire::Kind::hello_retry) return counters.hello_retries_sent;
  return stray == wire::Kind::reset ? counters.resets_sent : counters.closes_sent;
}

}  // namespace fairlead::link
