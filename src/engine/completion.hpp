#pragma once
// One record of a port's event queue: the end of an operation, or one message of a multi-message buffer.

#include <cstdint>
#include <type_traits>

#include <fairlead/error.hpp>

#include "base/socket_address.hpp"

namespace fairlead::engine {

/// A port of any engine.
struct RemotePort {
  base::SocketAddress engine;
  std::uint32_t port = 0;
  // The port first: it is short, and ports of one engine differ more often than engines.
  bool operator==(const RemotePort& other) const noexcept { return port == other.port && engine == other.engine; }
};

struct Completion {
  std::uint64_t cookie = 0;  // chosen by the operation's owner
  std::uint64_t length = 0;  // bytes received, sent, read or written
  std::uint64_t offset = 0;  // receives: offset of the message in the posted buffer
  std::int64_t time_ns = 0;  // MonotonicClock when the engine produced it
  RemotePort source{};       // receives: the sender; else the other side if known
  Status status = Status::ok;
  bool is_final = true;  // false: the buffer stays posted, more messages may come (RETAIN)
  bool is_loan = false;  // receives: the message is by reference; `offset` is its name for Core::loan()
};
static_assert(std::is_trivially_copyable_v<Completion> && sizeof(Completion) <= 72);

}  // namespace fairlead::engine
