#pragma once
// Receive buffers that the transfer machines of a domain share. The machines post them automatically (docs/net.md,
// "Buffer pools").

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include <fairlead/error.hpp>
#include <fairlead/net/buffer.hpp>
#include <fairlead/net/domain.hpp>

namespace fairlead::net {

struct PoolState;

/// Any colour, or no particular colour.
inline constexpr std::uint32_t kAnyColour = ~std::uint32_t{0};
inline constexpr std::uint32_t kColoursMax = 1024;

struct BufferPoolSettings {
  std::uint64_t buffer_size = std::uint64_t{64} * 1024;  ///< bytes, of each buffer
  /// The number of colours, 0..kColoursMax; colours are numbered from 0. A colour stands for a processor or another
  /// cache domain. A buffer that is returned under a colour goes first to callers that ask for this colour.
  std::uint32_t colours = 0;
  std::uint32_t threshold = 2;  ///< for on_below_threshold; prune() leaves this many
  /// Called once when fewer than `threshold` buffers are left in the pool, and again only after the pool has refilled.
  /// The thread that took the buffer calls it. If an engine took the buffer, the thread that delivers events calls it a
  /// little later.
  std::function<void()> on_below_threshold = {};
  /// Called when a buffer is put into the empty pool, by the thread that puts it.
  std::function<void()> on_not_empty = {};
};

/// A handle. The buffers live until this handle and all transfer machines attached to the pool are gone. The callbacks
/// run without a lock. They may call all functions here, but must not destroy a handle that is inside a call. An
/// exception that leaves a callback ends the process. Any thread.
class BufferPool {
 public:
  /// Creates an empty pool. `invalid`: a size of 0, or too many colours. `too_big`: above Domain::buffer_size_max().
  /// `bad_state`: the domain is closed.
  [[nodiscard]] static Result<BufferPool> create(const Domain& domain, BufferPoolSettings settings = {});

  BufferPool(BufferPool&&) noexcept;
  BufferPool& operator=(BufferPool&&) noexcept;
  ~BufferPool();

  /// Adds `count` new buffers without a colour, and returns how many it could make. If it could make none, returns the
  /// error of Buffer::allocate().
  [[nodiscard]] Result<std::size_t> provision(std::size_t count);
  /// Destroys the least recently used buffer of the pool. False if the pool has no more than `threshold` buffers.
  bool prune();

  /// Takes a buffer for the caller's use: the most recently returned one of that colour. If there is none of that
  /// colour, takes the least recently used buffer of all. Null if the pool is empty, or has no such colour. The pool
  /// still owns the buffer: return it with put(), do not destroy it.
  [[nodiscard]] Buffer* get(std::uint32_t colour = kAnyColour);
  /// Returns a buffer that the caller has from get(), or from a final event with status ok. Transfer machines that lack
  /// buffers take it at once. `invalid`: the buffer is of another pool, or the colour does not exist. `bad_state`: the
  /// buffer is queued, or already in the pool.
  Status put(Buffer& buffer, std::uint32_t colour = kAnyColour);

  /// free_count() is the number of buffers now in the pool; size() counts all buffers that belong to it.
  std::size_t free_count() const noexcept;
  std::size_t size() const noexcept;

 private:
  friend class TransferMachine;
  explicit BufferPool(std::shared_ptr<PoolState> state) noexcept;

  std::shared_ptr<PoolState> state_;
};

/// How a transfer machine uses the buffers of a pool to receive messages.
struct Provision {
  BufferCallback on_event;                ///< for these receives; the buffers' own callbacks are not called
  std::uint64_t size_min = kWholeBuffer;  ///< as MessageReceive::size_min; default: one message per buffer
  std::uint32_t messages_max = 1;         ///< as MessageReceive::messages_max
  std::uint32_t length = 2;               ///< number of buffers to keep posted
  std::uint32_t colour = kAnyColour;      ///< one of the pool's colours
  bool takes_loans = false;               ///< as MessageReceive::takes_loans
};

}  // namespace fairlead::net
