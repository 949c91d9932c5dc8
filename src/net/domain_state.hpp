#pragma once
// What the handle Domain refers to: settings, how to get an engine, and who is registered.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>

#include <fairlead/net/domain.hpp>

#include "engine/core.hpp"

namespace fairlead::net {

class Machine;

inline constexpr std::uint64_t kBufferSizeMax = std::uint64_t{1} << 36;  // bytes
inline constexpr std::size_t kSegmentsMax = 1024;                        // what the engine sends as one message

struct DomainState {
  using Attach = std::function<Result<std::shared_ptr<engine::Core>>(const base::SocketAddress& local,
                                                                     const engine::EngineOptions& options)>;
  static Domain handle(std::shared_ptr<DomainState> state) { return Domain(std::move(state)); }

  /// The machine, if it still lives.
  std::shared_ptr<Machine> find(Machine* machine);
  /// False if the domain is closed.
  bool add_machine(const std::shared_ptr<Machine>& machine);
  void remove_machine(Machine* machine);
  bool add_buffer();
  void remove_buffer();

  engine::EngineOptions options;
  Attach attach = engine::attach_embedded;

  std::mutex mutex;  // guards what follows; no other lock is taken under it
  bool is_closed = false;
  std::size_t buffers = 0;
  std::unordered_map<Machine*, std::weak_ptr<Machine>> machines;
};

}  // namespace fairlead::net
