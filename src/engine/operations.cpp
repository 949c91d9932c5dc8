#include "engine/operations.hpp"

#include "base/ensure.hpp"

namespace fairlead::engine {

std::uint32_t Operations::make(OperationKind kind, PortHandle port, std::uint64_t cookie) {
  const std::uint32_t slot = operations_.acquire();
  if (slot == kNone) return kNone;
  Operation& operation = operations_[slot];
  operation.kind = kind;
  operation.port = port.slot;
  operation.cookie = cookie;
  ++ports_[port.slot].operations;
  return slot;
}

Operation* Operations::find(PortHandle port, OperationHandle name) {
  Operation* const operation = operations_.find(name.slot, name.generation);
  return ports_.find(port) != nullptr && operation != nullptr && operation->port == port.slot ? operation : nullptr;
}

void Operations::complete(std::uint32_t slot, Status status, std::uint64_t length, base::Instant now) {
  const Operation& operation = operations_[slot];
  ports_.produce(operation.port, {.cookie = operation.cookie,
                                  .length = status == Status::ok ? length : 0,
                                  .offset = 0,
                                  .time_ns = now.time_since_epoch().count(),
                                  .source = operation.other,
                                  .status = status,
                                  .is_final = true});
  release(slot);
}

void Operations::release(std::uint32_t slot) {
  Operation& operation = operations_[slot];
  ENSURE(!operation.is_published, "operation {} ends while peers see its memory", slot);
  --ports_[operation.port].operations;
  operation.key = 0;  // exposures are looked up by slot, used or not
  operations_.release(slot);
}

}  // namespace fairlead::engine
