// What those hear who are no peers: a sender whose session we do not know, so that it learns that the session is gone;
// one who greets us and has not shown that it hears us. Anybody may provoke an answer in anybody's name. So none is
// longer than what provoked it, they have a budget (answer_budget.hpp), and nothing is kept but the answer until it is
// out.

#include <algorithm>

#include "link/link_state.hpp"

namespace fairlead::link {

void Link::State::answer_with_reset(const base::SocketAddress& to, std::uint64_t token, base::Instant now) {
  answer_stranger({.to = to, .kind = wire::Kind::reset, .token = token}, now);
}

void Link::State::ask_for_cookie(const base::SocketAddress& from, const wire::Frame& hello, base::Instant now) {
  const wire::ReturnAddress theirs = wire::read_return_address(hello.payload, hello.is_sealed());
  answer_stranger({.to = from,
                   .kind = wire::Kind::hello_retry,
                   .slot = theirs.slot,
                   .token = theirs.token,
                   .word = cookies.bake(from, hello.payload, now)},
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
  const auto stray = strays.take();
  was_stray = stray.has_value();
  if (!stray) return false;
  wire::Header header = stray->header();
  header.timestamp = wire::to_ticks(now);
  static_assert(wire::kRetryBytes == wire::kRefusedBytes);
  std::array<std::byte, wire::kRetryBytes> word;
  std::size_t word_bytes = 0;
  if (stray->kind == wire::Kind::hello_retry || stray->kind == wire::Kind::hello_refused) {
    stray->kind == wire::Kind::hello_retry ? wire::encode_retry(stray->word, word.data())
                                           : wire::encode_refused(stray->word, word.data());
    word_bytes = word.size();
  }
  if (stray->sealed) {
    std::ranges::copy(*stray->sealed, control_bytes.begin());
    hang_control(stray->to, stray->sealed->size(), train);
  } else {
    send_control(stray->to, header, std::span(word).first(word_bytes), train);
  }
  handed_out.what = HandedOut::What::stray;
  handed_out.stray = *stray;
  ++sent_count(stray->kind);
  return true;
}

std::uint64_t& Link::State::sent_count(wire::Kind stray) {
  if (stray == wire::Kind::hello_retry) return counters.hello_retries_sent;
  if (stray == wire::Kind::hello_refused) return counters.hello_refusals_sent;
  return stray == wire::Kind::reset ? counters.resets_sent : counters.closes_sent;
}

}  // namespace fairlead::link
