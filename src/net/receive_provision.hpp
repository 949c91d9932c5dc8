#pragma once
// How a machine receives into buffers of a pool. The engine takes them by itself, as many as we have made room for
// events of; here they become known with their first event (OperationQueues::adopt).

#include <cstdint>
#include <memory>

#include <fairlead/net/buffer_pool.hpp>

#include "net/machine_port.hpp"
#include "net/pool_state.hpp"

namespace fairlead::net {

/// Under the machine's lock.
class ReceiveProvision {
 public:
  /// `invalid`: of another domain, without a callback, or out of range.
  Result<> attach(const DomainState* domain, std::shared_ptr<PoolState> pool, Provision provision);
  bool is_attached() const { return pool_ != nullptr; }
  PoolState* pool() const { return pool_.get(); }
  const BufferCallback& callback() const { return wishes_.on_event; }

  Status set_length(std::uint32_t length);
  /// `invalid`: the pool has no such colour.
  Status set_colour(std::uint32_t colour);
  /// Of a started machine: the engine takes as many as are wished, and there are.
  void fill(MachinePort& port);
  /// The engine takes no more, and cancels those that it has.
  void withdraw(MachinePort& port);
  /// All of them are known here, or back.
  bool is_home(const MachinePort& port) const;
  /// Buffers that are wished ahead, and are not there.
  std::uint32_t deficit(const MachinePort& port) const;
  /// The machine has stopped.
  std::shared_ptr<PoolState> end() { return std::move(pool_); }

 private:
  static constexpr std::uint32_t kEventsMost = 1U << 30;

  std::shared_ptr<PoolState> pool_;
  Provision wishes_;
  std::uint32_t granted_ = 0;  // buffers, whose events have room
};

}  // namespace fairlead::net
