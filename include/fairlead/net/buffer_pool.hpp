#pragma once
// Receive buffers that the transfer machines of a domain share, and post by themselves (docs/net.md, "Buffer pools").

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include <fairlead/error.hpp>
#include <fairlead/net/buffer.hpp>
#include <fairlead/net/domain.hpp>

namespace fairlead::net {

struct PoolState;

/// Stands for any colour, and for none in particular.
inline constexpr std::uint32_t kAnyColour = ~std::uint32_t{0};
inline constexpr std::uint32_t kColoursMax = 1024;

struct BufferPoolSettings {
  std::uint64_t buffer_size = std::uint64_t{64} * 1024;  ///< bytes, of each buffer
  /// How many colours 0..colours - 1 there are; 0..kColoursMax. A colour stands for a processor, or anything with a
  /// cache: a buffer that comes back under a colour goes first to the one who asks for it.
  std::uint32_t colours = 0;
  std::uint32_t threshold = 2;  ///< of on_below_threshold, and that prune() leaves
  /// Called when fewer than `threshold` buffers are left in the pool: once, until there are as many again. By the
  /// thread that took one, or, where a transfer machine's engine did, by the one that delivers events, a little later.
  std::function<void()> on_below_threshold = {};
  /// Called by the thread that puts the first buffer into the empty pool.
  std::function<void()> on_not_empty = {};
};

/// A handle: the buffers live until it and all transfer machines that take buffers of it are gone. The callbacks run
/// without a lock, and may call everything here, but not destroy the handle that is in a call. An exception that leaves
/// one ends the process. Any thread.
class BufferPool {
 public:
  /// An empty pool. `invalid`: a size of 0, or too many colours. `too_big`: above Domain::buffer_size_max().
  /// `bad_state`: the domain is closed.
  [[nodiscard]] static Result<BufferPool> create(const Domain& domain, BufferPoolSettings settings = {});

  BufferPool(BufferPool&&) noexcept;
  BufferPool& operator=(BufferPool&&) noexcept;
  ~BufferPool();

  /// Makes so many buffers more, of no colour; how many were made. An error if none could be, as Buffer::allocate().
  Result<std::size_t> provision(std::size_t count);
  /// Destroys the least recently used buffer of the pool. False if no more than `threshold` are in it.
  bool prune();

  /// A buffer for the caller's own use: the one of that colour that came back last. If there is none, the least
  /// recently used of all. Null if the pool is empty, or has no such colour. It stays the pool's: put() it back, do not
  /// destroy it.
  [[nodiscard]] Buffer* get(std::uint32_t colour = kAnyColour);
  /// Gives a buffer back: one of get(), or of a final event with status ok. Transfer machines that have too few take it
  /// at once. `invalid`: of another pool, or no such colour. `bad_state`: it is queued, or here already.
  Status put(Buffer& buffer, std::uint32_t colour = kAnyColour);

  /// Buffers that are in the pool now, and all that belong to it.
  std::size_t free_count() const noexcept;
  std::size_t size() const noexcept;

 private:
  friend class TransferMachine;
  explicit BufferPool(std::shared_ptr<PoolState> state) noexcept;

  std::shared_ptr<PoolState> state_;
};

/// How a transfer machine takes buffers of a pool to receive messages.
struct Provision {
  BufferCallback on_event;                ///< of these receives; the buffers' own callbacks are not called for them
  std::uint64_t size_min = kWholeBuffer;  ///< as MessageReceive::size_min; the default is a buffer per message
  std::uint32_t messages_max = 1;         ///< as MessageReceive::messages_max
  std::uint32_t length = 2;               ///< buffers that are posted ahead
  std::uint32_t colour = kAnyColour;      ///< of the pool's
  bool takes_loans = false;               ///< as MessageReceive::takes_loans
};

}  // namespace fairlead::net
