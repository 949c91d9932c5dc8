#pragma once
// How a machine receives into buffers of a pool. The engine takes buffers by itself, up to the events reserved for
// them. The machine learns of a buffer at its first event (OperationQueues::adopt).

#include <cstdint>
#include <memory>

#include <fairlead/net/buffer_pool.hpp>

#include "net/machine_port.hpp"
#include "net/pool_state.hpp"

namespace fairlead::net {

/// The caller holds the machine's lock.
class ReceiveProvision {
 public:
  /// Returns `invalid` if the pool is of another domain, or if the provision has no callback or is out of range.
  Result<> attach(const DomainState* domain, std::shared_ptr<PoolState> pool, Provision provision);
  bool is_attached() const { return pool_ != nullptr; }
  PoolState* pool() const { return pool_.get(); }
  const BufferCallback& callback() const { return wishes_.on_event; }

  Status set_length(std::uint32_t length);
  /// Returns `invalid` if the pool has no such colour.
  Status set_colour(std::uint32_t colour);
  /// For a started machine: reserves events, so that the engine takes as many buffers as wished and available.
  void fill(MachinePort& port);
  /// Stops the engine from taking buffers, and cancels those it holds.
  void withdraw(MachinePort& port);
  /// Returns whether the engine holds no pool buffer whose end the machine has not seen.
  bool is_home(const MachinePort& port) const;
  /// Returns how many receive buffers are wished for but missing.
  std::uint32_t deficit(const MachinePort& port) const;
  /// Detaches the pool after the machine has stopped.
  std::shared_ptr<PoolState> end() { return std::move(pool_); }

 private:
  static constexpr std::uint32_t kEventsMost = 1U << 30;

  std::shared_ptr<PoolState> pool_;
  Provision wishes_;
  std::uint32_t granted_ = 0;  // buffers for which events are reserved
};

}  // namespace fairlead::net
