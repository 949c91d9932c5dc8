#pragma once
// State that all parts of the message client share.

#include <chrono>
#include <cstdint>

#include "base/slab.hpp"
#include "base/socket_address.hpp"
#include "base/time.hpp"
#include "engine/engine_counters.hpp"
#include "engine/engine_options.hpp"
#include "engine/operation.hpp"
#include "engine/operations.hpp"
#include "engine/ports.hpp"
#include "transport/transports.hpp"

namespace fairlead::engine {

struct MessageContext {
  /// `transports` is null if this engine reaches only itself.
  MessageContext(Ports& all_ports, transport::Transports* all_transports, const base::SocketAddress& own,
                 std::uint64_t own_epoch, const EngineOptions& all_options)
      : ports(all_ports),
        transports(all_transports),
        address(own),
        epoch(own_epoch),
        options(all_options),
        operations(all_ports, static_cast<std::uint32_t>(all_options.get(Option::operations_max))),
        placements(static_cast<std::uint32_t>(2 * all_options.get(Option::operations_max))) {}

  shm::Transport* shm_transport() const { return transports != nullptr ? transports->shm_transport() : nullptr; }
  base::Duration give_up_after() const { return std::chrono::milliseconds(options.get(Option::give_up_after)); }

  Ports& ports;
  transport::Transports* transports;
  base::SocketAddress address;
  std::uint64_t epoch;
  const EngineOptions& options;
  Operations operations;
  base::Slab<Placement> placements;  // of messages in several chunks that are arriving
  EngineCounters counters;
};

}  // namespace fairlead::engine
