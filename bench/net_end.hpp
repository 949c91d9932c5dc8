#pragma once
// One transfer machine of a benchmark, with receives that never run out and buffers to send from.

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <fairlead/net.hpp>

namespace fairlead::bench {

[[noreturn]] inline void give_up(std::string_view what) {
  fmt::print(stderr, "{}: {}\n", program_invocation_short_name, what);
  std::_Exit(1);
}
inline void want(Status status, std::string_view what) {
  if (status != Status::ok) give_up(fmt::format("{}: {}", what, to_string(status)));
}
template <typename T>
T take(Result<T> result) {
  if (!result) give_up(result.error().message);
  return std::move(*result);
}

struct NetEnd {
  static constexpr std::size_t kMessages = 4096;  // in one receive buffer

  NetEnd(net::Domain& domain, std::string_view ip, std::size_t in_flight, std::uint64_t size) : machine(domain) {
    if (!machine.deliver_synchronously()) give_up("no synchronous delivery");
    own = take(machine.start_and_wait(fmt::format("{}@udp:*:34:1", ip)));
    const net::MessageReceive receive{.size_min = size, .messages_max = kMessages};
    for (int i = 0; i < 4; ++i) {
      inboxes.push_back(take(net::Buffer::allocate(domain, size * kMessages)));
      inboxes.back()->set_callback([this, receive](const net::BufferEvent& event) {
        if (event.status == Status::ok) ++received;
        if (event.is_final && event.status == Status::ok) want(machine.add(event.buffer, receive), "receive");
      });
      want(machine.add(*inboxes.back(), receive), "receive");
    }
    for (std::size_t i = 0; i < in_flight; ++i) {
      outboxes.push_back(take(net::Buffer::allocate(domain, size)));
      outboxes.back()->set_callback([this](const net::BufferEvent& event) {
        if (event.status != Status::canceled) want(event.status, "message");  // at the end
        idle.push_back(&event.buffer);
      });
      idle.push_back(outboxes.back().get());
    }
  }

  void send(const net::EndPoint& to, std::uint64_t size) {
    want(machine.add(*idle.back(), net::MessageSend{.to = to, .length = size}), "send");
    idle.pop_back();
  }

  net::TransferMachine machine;
  net::EndPoint own;
  std::uint64_t received = 0;
  std::vector<net::Buffer*> idle;  // outlives the buffers, because their last events come at their destruction
  std::vector<std::unique_ptr<net::Buffer>> inboxes, outboxes;
};

}  // namespace fairlead::bench
