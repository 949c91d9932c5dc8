// What must hold between any two calls. The simulator asks after each step.

#include <vector>

#include "base/ensure.hpp"
#include "engine/engine.hpp"
#include "qp/queue_pairs.hpp"

namespace fairlead::engine {

void Engine::check() {
  std::vector<std::uint32_t> of_port;
  operations_.for_each([&](std::uint32_t slot, const Operation& operation) {
    if (operation.port >= of_port.size()) of_port.resize(operation.port + 1);
    ++of_port[operation.port];
    ENSURE(operation.fill <= operation.length, "operation {}: {} of {} bytes are given away", slot, operation.fill,
           operation.length);
    ENSURE(operation.kind != OperationKind::receive || operation.is_busy || operation.is_in_chain,
           "operation {}: a receive that takes nothing and does not end", slot);
    ENSURE(operation.first_placement == kNone || placements_[operation.first_placement].operation == name_of(slot),
           "operation {}: its first message is another's", slot);
  });
  ports_.for_each([&](std::uint32_t slot, const Port& port) {
    const std::uint64_t own = slot < of_port.size() ? of_port[slot] : 0;
    const std::uint64_t elsewhere = shm_transport() != nullptr ? shm_transport()->count_pending(slot) : 0;
    ENSURE(port.operations == own + elsewhere, "port {}: {} operations, of which {} are here and {} in shared memory",
           port.number, port.operations, own, elsewhere);
  });
  active_.check();
  if (flows_) flows_->check();
  if (shm_transport() != nullptr) shm_transport()->check();
  if (transports_) ENSURE(transports_->link().counters().is_consistent(), "the link's counters contradict each other");
}

}  // namespace fairlead::engine
