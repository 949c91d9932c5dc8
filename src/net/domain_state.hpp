#pragma once
// What the handle Domain refers to: settings, how to get an engine, and who is registered.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include <fairlead/net/domain.hpp>

#include "base/process_mark.hpp"
#include "engine/core.hpp"
#include "host/attach.hpp"
#include "net/clock.hpp"
#include "net/small_memory.hpp"

namespace fairlead::net {

class Machine;
struct BufferState;

/// Stands for the clock and for threads, where a simulation has both: machines get none of their own, and everything
/// happens on the one thread that drives them.
struct Simulation {
  std::function<Instant()> now;
  /// For calls that wait: lets something happen.
  std::function<void()> pass_time;
};

/// In the child of a fork() it answers that it is closed, without a look at its lock.
struct DomainState {
  using Attach = std::function<Result<std::shared_ptr<engine::Core>>(const base::SocketAddress& local,
                                                                     const engine::EngineOptions& options)>;
  static Domain handle(std::shared_ptr<DomainState> state) { return Domain(std::move(state)); }

  /// The machine, if it still lives.
  std::shared_ptr<Machine> find(Machine* machine);
  /// False if the domain is closed.
  bool add_machine(const std::shared_ptr<Machine>& machine);
  void remove_machine(Machine* machine);
  Instant time() const { return simulation ? simulation->now() : now(); }
  /// Of a simulation: each machine does what is due, in the order of their making; when one wants to be called again.
  Instant step_machines();
  /// From where peers of this host reach memory by themselves; the last one is asked.
  void set_allocate_shared(engine::Core::AllocateShared allocate);
  /// For a buffer: zeroed, where peers of this host reach it if there is such memory. Null if there is none of a kind
  /// that is shared, by buffers or with peers.
  std::shared_ptr<std::byte> shared_memory(std::uint64_t bytes);
  /// Whether a machine tells the buffer's final event at this moment.
  bool is_told(const BufferState& buffer) { return teller_of(buffer) != nullptr; }
  /// Which one; null if none does. It may have gone by then: to be compared.
  const Machine* teller_of(const BufferState& buffer);
  bool is_open();
  bool add_buffer();
  void remove_buffer();

  /// Of this process alone; null if there is none.
  static std::shared_ptr<std::byte> allocate_pages(std::uint64_t bytes);

  const base::ProcessMark mark;
  engine::EngineOptions options;
  BufferLimits limits;  // at most the defaults: what the engine sends as one message
  Attach attach = [](const base::SocketAddress& local, const engine::EngineOptions& wanted) {
    return host::attach(local, wanted, host::Use::messages);
  };
  std::optional<Simulation> simulation;

  std::mutex mutex;  // guards what follows; no other lock is taken under it
  bool is_closed = false;
  engine::Core::AllocateShared allocate_shared;
  SmallMemory small{allocate_pages};
  std::size_t buffers = 0;
  std::uint64_t machines_made = 0;
  struct Enrolled {
    std::uint64_t number = 0;
    std::weak_ptr<Machine> machine;
  };
  std::unordered_map<Machine*, Enrolled> machines;
};

}  // namespace fairlead::net
