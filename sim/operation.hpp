#pragma once
// One operation of an application, from submission to its single end.

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

  std::uint64_t number = 0;  // its cookie, and its name within its bytes
  OperationKind kind = OperationKind::send;
  State state = State::pending;
  Status status = Status::ok;
  Status misuse = Status::ok;  // the status with which a wrong request must end
  bool is_cancel_wanted = false;
  std::uint32_t host = 0, life = 0, port = 0;
  std::uint32_t flow = kNoFlow;
  std::uint32_t other_host = 0, other_port = 0;  // the destination
  std::uint64_t size = 0;
  std::uint64_t partner = 0;   // put, get: number of the exposure; exposure: number of the put or get
  std::uint64_t key = 0;       // of an exposure
  std::uint32_t received = 0;  // message: number of arrivals
  engine::OperationHandle handle;
  std::unique_ptr<Region> region;
  base::Instant submitted{}, ended{};  // in the world's time

  // Of a receive:
  std::uint64_t filled = 0;    // end of the last message
  std::uint32_t messages = 0;  // so far
  std::uint32_t messages_max = 0;
};

}  // namespace fairlead::sim
