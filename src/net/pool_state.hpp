#pragma once
// PoolState is the object behind a BufferPool handle. Pooled buffers are spares that engines take by themselves
// (engine/spare_receives.hpp). Their phase stays `pooled` until the first event, or get(), shows who has them.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
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

/// Any thread may call these functions, but must hold no machine's lock.
struct PoolState {
  PoolState(std::shared_ptr<DomainState> domain_state, BufferPoolSettings all_settings);
  ~PoolState();
  PoolState(const PoolState&) = delete;
  PoolState& operator=(const PoolState&) = delete;

  Result<std::size_t> provision(std::size_t count);
  bool prune();
  Buffer* get(std::uint32_t colour);
  Status put(Buffer& buffer, std::uint32_t colour);
  /// Takes back a buffer whose phase is already `pooled`.
  void take_back(PooledBuffer& pooled, std::uint32_t colour);
  std::size_t size() const;
  bool has_colour(std::uint32_t colour) const { return colour == kAnyColour || colour < settings.colours; }

  /// Calls on_below_threshold, once, if few buffers are left.
  void look();
  void attach(std::weak_ptr<Machine> machine);
  /// Places all buffers near a NUMA node, unless an earlier call has chosen one.
  void place_near(std::optional<unsigned> node);
  /// Lets each machine post more receives, if it lacks any.
  void refill_machines();
  /// Returns how many buffers one machine may take: an equal share. Keeps a reserve: the threshold of
  /// on_below_threshold, and `length` for a machine that attaches later.
  std::uint32_t share(std::uint32_t length) const;

  const std::shared_ptr<DomainState> domain;
  const BufferPoolSettings settings;
  const std::shared_ptr<engine::SpareReceives> spares;

 private:
  std::atomic<bool> is_low_{true};  // already reported; an empty pool is not worth a report
  mutable std::mutex mutex_;        // guards the fields below; no other lock is taken while it is held
  std::list<PooledBuffer> all_;
  std::vector<std::weak_ptr<Machine>> machines_;
  std::optional<unsigned> node_;
};

}  // namespace fairlead::net
