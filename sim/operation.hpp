#pragma once
// One operation that an application has submitted, from submission to its single end.

#include <cstdint>
#include <memory>

#include <fairlead/error.hpp>

#include "base/time.hpp"
#include "engine/core.hpp"
#include "engine/operation.hpp"
#include "sim/region.hpp"

namespace fairlead::sim {

using engine::OperationKind;

inline constexpr std::uint32_t kNoFlow = ~0U;

struct Operation {
  enum class State : std::uint8_t {
    pending,
    ended,
    gone,  // its process was killed
  };

  std::uint64_t number = 0;  // its cookie, and the name in its bytes
  OperationKind kind = OperationKind::send;
  State state = State::pending;
  Status status = Status::ok;
  Status misuse = Status::ok;  // how a wrong request has to end
  bool is_cancel_wanted = false;
  std::uint32_t host = 0, life = 0, port = 0;
  std::uint32_t flow = kNoFlow;
  std::uint32_t other_host = 0, other_port = 0;  // whom it goes to
  std::uint64_t size = 0;
  std::uint64_t partner = 0;   // put, get: number of the exposure; exposure: of the put or get
  std::uint64_t key = 0;       // exposure
  std::uint32_t received = 0;  // message: how often it arrived
  engine::OperationHandle handle;
  std::unique_ptr<Region> region;
  base::Instant submitted{}, ended{};  // time of the world

  // receive
  std::uint64_t filled = 0;    // end of the last message
  std::uint32_t messages = 0;  // so far
  std::uint32_t messages_max = 0;
};

}  // namespace fairlead::sim
