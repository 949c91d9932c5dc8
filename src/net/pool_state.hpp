#pragma once
// What the handle BufferPool refers to. Buffers that are in the pool lie among the spares, where engines take them from
// (engine/spare_receives.hpp); their phase is `pooled` until the first event, or get(), shows who has them.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include <fairlead/net/buffer_pool.hpp>

#include "engine/core.hpp"
#include "net/buffer_state.hpp"
#include "net/domain_state.hpp"

namespace fairlead::net {

struct PooledBuffer {
  engine::Spare spare;
  std::unique_ptr<Buffer> buffer;
  PoolState* pool = nullptr;
};

/// Any thread; none of the locks of a machine is held.
struct PoolState {
  PoolState(std::shared_ptr<DomainState> domain_state, BufferPoolSettings all_settings);
  ~PoolState();
  PoolState(const PoolState&) = delete;
  PoolState& operator=(const PoolState&) = delete;

  Result<std::size_t> provision(std::size_t count);
  bool prune();
  Buffer* get(std::uint32_t colour);
  Status put(Buffer& buffer, std::uint32_t colour);
  /// One whose phase is `pooled` already.
  void take_back(PooledBuffer& pooled, std::uint32_t colour);
  std::size_t size() const;
  bool has_colour(std::uint32_t colour) const { return colour == kAnyColour || colour < settings.colours; }

  /// Tells that few are left, if so.
  void look();
  void attach(std::weak_ptr<Machine> machine);
  /// Machines post more, if they lack any.
  void refill_machines();
  /// A machine's equal part of the buffers. Those that on_below_threshold tells of stay, and `length` for a machine
  /// that comes late.
  std::uint32_t share(std::uint32_t length) const;

  const std::shared_ptr<DomainState> domain;
  const BufferPoolSettings settings;
  const std::shared_ptr<engine::SpareReceives> spares;

 private:
  std::atomic<bool> is_low_{true};  // that it was told; an empty pool is no news
  mutable std::mutex mutex_;        // guards what follows; no other lock is taken under it
  std::list<PooledBuffer> all_;
  std::vector<std::weak_ptr<Machine>> machines_;
};

}  // namespace fairlead::net
