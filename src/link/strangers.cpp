#include "link/strangers.hpp"

namespace fairlead::link {

Strangers::Strangers(LinkContext& context, TokenSource& secrets)
    : context_(context),
      cookies_(secrets),
      budget_(secrets.next_key(), context.options.answers_each_per_second, context.options.answers_per_second) {}

void Strangers::answer_with_reset(const base::SocketAddress& to, std::uint64_t token, base::Instant now) {
  answer({.to = to, .kind = wire::Kind::reset, .token = token}, now);
}

void Strangers::ask_for_cookie(const base::SocketAddress& from, const wire::Frame& hello, base::Instant now) {
  const wire::ReturnAddress theirs = wire::read_return_address(hello.payload, hello.is_sealed());
  answer({.to = from,
          .kind = wire::Kind::hello_retry,
          .slot = theirs.slot,
          .token = theirs.token,
          .word = cookies_.bake(from, hello.payload, now)},
         now);
}

void Strangers::answer(const Stray& answer, base::Instant now) {
  if (is_full() || !budget_.take(answer.to, now)) {
    ++context_.counters.answers_withheld;
    return;
  }
  strays_.push(answer);
}

std::uint64_t& Strangers::sent_count(wire::Kind stray) {
  if (stray == wire::Kind::hello_retry) return context_.counters.hello_retries_sent;
  if (stray == wire::Kind::hello_refused) return context_.counters.hello_refusals_sent;
  return stray == wire::Kind::reset ? context_.counters.resets_sent : context_.counters.closes_sent;
}

}  // namespace fairlead::link
