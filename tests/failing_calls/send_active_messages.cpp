#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <fairlead/am.hpp>

#include "tests/failing_calls/scenario.hpp"

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;

constexpr auto kRepliesWithin = 10s;
constexpr std::uint8_t kEcho = 10, kReply = 11;
constexpr std::uint64_t kKey = 7;

struct Seen {
  std::atomic<unsigned> requests = 0, replies = 0, returned = 0, strange = 0;
  am::Name other;  // unknown until the first request
};

void on_request(void* context, am::Token& token, const am::Message& message) {
  auto& seen = *static_cast<Seen*>(context);
  ++(token.source() == seen.other ? seen.requests : seen.strange);
  static_cast<void>(token.reply(kReply, message.arguments));
}
void on_reply(void* context, am::Token&, const am::Message&) {
  ++static_cast<Seen*>(context)->replies;
}
void on_returned(void* context, am::Endpoint&, const am::Returned&) {
  ++static_cast<Seen*>(context)->returned;
}

Ending set_up(am::Endpoint& endpoint, const Part& part, Seen& seen, std::vector<std::byte>& memory) {
  endpoint.set_tag(am::Tag::of(kKey));
  endpoint.set_segment(memory.data(), memory.size());
  endpoint.set_error_handler(&on_returned, &seen);
  for (const auto& [index, handler] : {std::pair{kEcho, &on_request}, std::pair{kReply, &on_reply}}) {
    if (const Status status = endpoint.set_handler(index, handler, &seen); status != Status::ok) return ended(status);
  }
  if (!swap(part, endpoint.name(), seen.other)) return other_is_gone();
  if (const Status status = endpoint.map(0, seen.other, kKey); status != Status::ok) return ended(status);
  return {};
}

Ending wait_for(const Part& part, am::Bundle& bundle, const Seen& seen, const std::atomic<unsigned>& count,
                unsigned wanted) {
  for (const Instant deadline = Instant::clock::now() + kRepliesWithin; count < wanted;) {
    if (seen.returned != 0) return {"a request was returned", true};
    if (Instant::clock::now() > deadline) return {"hangs: a request has no reply", true};
    if (is_other_gone(part)) return other_is_gone();
    bundle.wait(Instant::clock::now() + 50ms);
  }
  return {};
}

}  // namespace

Ending send_active_messages(const Part& part) {
  auto domain = am::Domain::open(
      {.ip = part.ip, .engine = {{"path", part.path}, {"give_up_after", "1000"}}, .request_timeout = 3s});
  if (!domain) return ended(domain.error());
  Seen seen;
  std::vector<std::byte> memory(100'000), data(50'000);
  am::Bundle bundle(*domain, am::BundleMode::parallel);
  const auto added = bundle.add_endpoint();
  if (!added) return ended(added.error());
  am::Endpoint& endpoint = **added;
  if (auto end = set_up(endpoint, part, seen, memory); !end.error.empty()) return end;
  if (const Status status = bundle.start_interrupts(); status != Status::ok) return ended(status);
  constexpr std::array<am::Argument, 2> kWords{1, 2};
  constexpr unsigned kRounds = 4;
  char is_over = 0;
  if (part.is_first) {
    for (unsigned round = 0; round < kRounds; ++round) {
      for (const Status status : {endpoint.request(0, kEcho, kWords), endpoint.request_medium(0, kEcho, data, kWords),
                                  endpoint.request_long(0, 100, kEcho, data, kWords)}) {
        if (status != Status::ok) return ended(status);
      }
      if (auto end = wait_for(part, bundle, seen, seen.replies, 3 * (round + 1)); !end.error.empty()) return end;
    }
    return tell(part, &is_over, 1) ? Ending{} : other_is_gone();
  }
  if (!hear(part, &is_over, 1)) return other_is_gone();
  if (seen.requests == 3 * kRounds && seen.strange == 0) return {};
  return {fmt::format("wrong: {} requests sent, {} have run, and {} of a stranger", 3 * kRounds, seen.requests.load(),
                      seen.strange.load()),
          true};
}

}  // namespace fairlead::tests
