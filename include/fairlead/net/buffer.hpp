#pragma once
// Memory for messages and bulk transfers.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <fairlead/error.hpp>
#include <fairlead/net/descriptor.hpp>
#include <fairlead/net/domain.hpp>
#include <fairlead/net/event.hpp>

namespace fairlead::net {

struct BufferState;

/// All bytes of the buffer.
inline constexpr std::uint64_t kWholeBuffer = ~std::uint64_t{0};

/// A list of memory segments, registered with a domain for the life of the buffer. A buffer is free, or queued with one
/// transfer machine. Over time the program may add it to any queue of any transfer machine of its domain. Events refer
/// to a buffer by its address, so it does not move: keep the unique_ptr, also in containers.
class Buffer {
 public:
  /// Allocates memory: one segment of `size` zero bytes, aligned to a page. Large segments are aligned to a huge page.
  /// Segments of at most 2 KiB share pages and are aligned to a cache line.
  ///
  /// If a transfer machine of the domain has started on a network, that machine's engine provides the memory (the last
  /// one started). Peers of this host can then access the memory directly: the initiator of a put or get makes the only
  /// copy (docs/shm.md). So allocate buffers for passive queues after the start. `invalid`: size 0. `too_big`: above
  /// Domain::buffer_size_max(). `no_memory`.
  [[nodiscard]] static Result<std::unique_ptr<Buffer>> allocate(Domain& domain, std::uint64_t size);

  /// Uses the caller's memory, without a copy and with any alignment. The memory must outlive the buffer. `invalid`:
  /// there is no segment, or one is empty. `too_big`: more segments or bytes than the domain's limits.
  [[nodiscard]] static Result<std::unique_ptr<Buffer>> borrow(Domain& domain,
                                                              std::span<const std::span<std::byte>> segments);
  [[nodiscard]] static Result<std::unique_ptr<Buffer>> borrow(Domain& domain, std::span<std::byte> memory);

  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  /// If the buffer is queued, cancels it and waits until its final event has been delivered. Inside a callback (of any
  /// buffer or transfer machine) it waits only until the memory is no longer in use. The final event is then delivered
  /// after that callback, with a substitute for this handle. Objects that the buffer's callback refers to must live
  /// until then. In the buffer's own final callback ("send and forget") the memory is freed after the callback.
  ~Buffer();

  /// Deregisters the buffer. `bad_state` while it is queued. Afterwards the program cannot add the buffer.
  Result<> close();

  /// Sets the callback for the events of one queue, or of all queues. `bad_state` (nothing changed) while the buffer is
  /// queued or one of its callbacks runs. Exception: the buffer's final callback may set the callback of another queue,
  /// for the next add(). An exception that leaves a callback ends the process.
  Status set_callback(QueueKind kind, BufferCallback callback);
  Status set_callback(const BufferCallback& callback);

  /// A pointer for the application; the library does not use it. With `event.buffer.user()` a callback finds the object
  /// that the buffer belongs to. Initially null. Set it while no callback of the buffer runs.
  void set_user(void* user) noexcept;
  void* user() const noexcept;

  /// Total bytes of all segments.
  std::uint64_t size() const noexcept;
  std::size_t segment_count() const noexcept;
  /// The segment at `index` < segment_count(); an empty span beyond.
  std::span<std::byte> segment(std::size_t index) const noexcept;

  /// The bytes [offset, offset + length) as far as they are contiguous. At the end of a segment the span is shorter, or
  /// empty.
  std::span<std::byte> bytes(std::uint64_t offset, std::uint64_t length) const noexcept;
  /// Copies across segments. Returns the number of bytes copied, which is less if the buffer ends first.
  std::uint64_t write(std::uint64_t offset, std::span<const std::byte> from) noexcept;
  std::uint64_t read(std::uint64_t offset, std::span<std::byte> to) const noexcept;

  /// The descriptor of the last successful add() to a passive queue; all zero before the first one. It is valid for one
  /// transfer while the buffer stays queued. Read it after add() has returned, and not while another thread adds the
  /// buffer.
  const BufferDescriptor& descriptor() const noexcept;

  /// True from a successful add() to just before the callback of the final event.
  bool is_queued() const noexcept;

 private:
  friend struct BufferState;
  explicit Buffer(BufferState* state) noexcept;

  BufferState* state_;  // counted: this handle, the queue, a running callback
};

}  // namespace fairlead::net
