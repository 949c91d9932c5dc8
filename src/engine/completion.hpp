#pragma once
// One record of a port's event queue: the end of an operation, or one message of a multi-message buffer.

#include <cstdint>
#include <type_traits>

#include <fairlead/error.hpp>

#include "base/socket_address.hpp"

namespace fairlead::engine {

/// A port of an engine anywhere.
struct RemotePort {
  base::SocketAddress engine;
  std::uint32_t port = 0;
  bool operator==(const RemotePort&) const = default;
};

struct Completion {
  std::uint64_t cookie = 0;  // the owner's word of the operation
  std::uint64_t length = 0;  // bytes received, sent, read or written
  std::uint64_t offset = 0;  // receives: where in the posted buffer the message starts
  std::int64_t time_ns = 0;  // MonotonicClock when the engine produced it
  RemotePort source{};       // receives: who sent; else the other side if known
  Status status = Status::ok;
  bool is_final = true;  // false: the buffer stays posted, more may come (RETAIN)
  bool is_loan = false;  // receives: the message lies elsewhere; `offset` names it, for Core::loan()
};
static_assert(std::is_trivially_copyable_v<Completion> && sizeof(Completion) <= 72);

}  // namespace fairlead::engine
