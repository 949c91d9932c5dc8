// Both ends of the operation are in this engine: one copy, both completions, no link.

#include <algorithm>

#include "base/scatter.hpp"
#include "engine/engine.hpp"

namespace fairlead::engine {

void Engine::send_local(std::uint32_t slot, std::uint32_t target_port) {
  const Operation& sender = operations_[slot];
  const std::uint32_t target = ports_.find_number(target_port);
  if (target == Ports::kNone) {
    ++counters_.dropped_no_port;
  } else if (const std::uint32_t receiver = match_receive(target, sender.length); receiver == kNone) {
    ++counters_.dropped_no_buffer;
    ports_.drop(target);
  } else {
    const std::uint64_t offset = take_room(receiver, sender.length);
    base::scatter_copy(operations_[receiver].memory, offset, sender.memory, sender.length);
    complete_message(receiver, offset, sender.length, {address_, ports_[sender.port].number});
  }
  complete(slot, Status::ok, sender.length);
}

void Engine::transfer_local(std::uint32_t slot, std::uint64_t key, std::uint32_t target_port) {
  const Operation& active = operations_[slot];
  const bool is_put = active.kind == OperationKind::put;
  std::uint32_t exposure = kNone;
  const auto kind = is_put ? OperationKind::expose_writable : OperationKind::expose_readable;
  const Status status = check_exposure(key, target_port, kind, active.length, exposure);
  if (status != Status::ok) {
    complete(slot, status, 0);
    return;
  }
  const Operation& passive = operations_[exposure];
  const std::uint64_t length = is_put ? active.length : passive.length;
  if (is_put) {
    base::scatter_copy(passive.memory, 0, active.memory, length);
  } else {
    base::scatter_copy(active.memory, 0, passive.memory, length);
  }
  operations_[exposure].other = {address_, ports_[active.port].number};
  complete(exposure, Status::ok, length);
  complete(slot, Status::ok, length);
}

}  // namespace fairlead::engine
