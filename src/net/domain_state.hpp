#pragma once
// DomainState is the object behind a Domain handle: settings, the way to attach to an engine, registered machines and
// buffers.

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

/// Replaces the clock and the threads in a simulation. Machines get no threads of their own: one thread drives
/// everything.
struct Simulation {
  std::function<Instant()> now;
  /// Blocking calls use it to let something else happen.
  std::function<void()> pass_time;
};

/// In the child of a fork(), every function reports a closed domain and does not touch the lock.
struct DomainState {
  using Attach = std::function<Result<std::shared_ptr<engine::Core>>(const base::SocketAddress& local,
                                                                     const engine::EngineOptions& options)>;
  static Domain handle(std::shared_ptr<DomainState> state) { return Domain(std::move(state)); }

  /// Returns the machine, or null if it no longer exists.
  std::shared_ptr<Machine> find(Machine* machine);
  /// Returns false if the domain is closed.
  bool add_machine(const std::shared_ptr<Machine>& machine);
  void remove_machine(Machine* machine);
  Instant time() const { return simulation ? simulation->now() : now(); }
  /// Simulation only: steps each machine in the order of construction. Returns when a machine next wants a step.
  Instant step_machines();
  /// Sets the allocator of memory that local peers can map. The last one set is used.
  void set_allocate_shared(engine::Core::AllocateShared allocate);
  /// Allocates zeroed memory for a buffer, preferably mapped by local peers. Returns null if no memory is left that
  /// buffers or peers can share.
  std::shared_ptr<std::byte> shared_memory(std::uint64_t bytes);
  /// Returns whether a machine is delivering the buffer's final event at this moment.
  bool is_told(const BufferState& buffer) { return teller_of(buffer) != nullptr; }
  /// Returns that machine, or null if there is none. The machine may be gone already: only compare the pointer.
  const Machine* teller_of(const BufferState& buffer);
  bool is_open();
  bool add_buffer();
  void remove_buffer();

  /// Allocates memory that is private to this process. Returns null if there is none.
  static std::shared_ptr<std::byte> allocate_pages(std::uint64_t bytes);

  const base::ProcessMark mark;
  engine::EngineOptions options;
  BufferLimits limits;  // at most the defaults, which are what the engine sends as one message
  Attach attach = [](const base::SocketAddress& local, const engine::EngineOptions& wanted) {
    return host::attach(local, wanted, host::Use::messages);
  };
  std::optional<Simulation> simulation;

  std::mutex mutex;  // guards the fields below; no other lock is taken while it is held
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
