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

/// Stands for all bytes of the buffer.
inline constexpr std::uint64_t kWholeBuffer = ~std::uint64_t{0};

/// A list of memory segments, registered with a domain for its life. It is free or queued with one transfer machine;
/// over time it may be added to any queue of any transfer machine of its domain.
/// It has an address of its own (events refer to it), so it does not move: keep it by the unique_ptr, also in
/// containers.
class Buffer {
 public:
  /// Memory of its own: one segment of `size` bytes, zero, aligned to a page. Large ones are aligned to a huge page,
  /// those of at most 2 KiB, many of which share a page, to a cache line. If a transfer machine of the domain has
  /// started on a network, the memory belongs to that machine's engine (the one started last), and peers of this host
  /// reach it by themselves: the initiator of a put or a get makes the only copy (docs/shm.md). So make buffers for
  /// passive queues after the start. `invalid`: size 0. `too_big`: above Domain::buffer_size_max(). `no_memory`.
  [[nodiscard]] static Result<std::unique_ptr<Buffer>> allocate(Domain& domain, std::uint64_t size);

  /// The caller's memory, which has to outlive the buffer; not copied, any alignment.
  /// `invalid`: no segment, or an empty one. `too_big`: more segments or bytes than the domain's limits.
  [[nodiscard]] static Result<std::unique_ptr<Buffer>> borrow(Domain& domain,
                                                              std::span<const std::span<std::byte>> segments);
  [[nodiscard]] static Result<std::unique_ptr<Buffer>> borrow(Domain& domain, std::span<std::byte> memory);

  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  /// Of a queued buffer: cancels it and waits until its final event has been delivered. In a callback (of whatever
  /// buffer or transfer machine) it waits only until the memory is no longer in use. The final event is delivered after
  /// that callback, and shows a handle that stands in for this one. What the buffer's callback refers to has to live
  /// until then. In the buffer's own final callback ("send and forget") the memory goes after the callback.
  ~Buffer();

  /// Gives the registration back: `bad_state` while queued. The buffer cannot be added any more.
  Result<> close();

  /// Sets what is called with the events of one queue, or of all queues. `bad_state` (nothing changed) while the buffer
  /// is queued or one of its callbacks runs. But its own final callback may set those of the other queues, one by one,
  /// for the queue that the buffer is added to next. An exception that leaves a callback ends the process.
  Status set_callback(QueueKind kind, BufferCallback callback);
  Status set_callback(const BufferCallback& callback);

  /// A word of the application's own, which nobody looks at: `event.buffer.user()` finds what the buffer belongs to
  /// without a table. Null at first; set it while no callback of the buffer runs.
  void set_user(void* user) noexcept;
  void* user() const noexcept;

  /// Bytes of all segments.
  std::uint64_t size() const noexcept;
  std::size_t segment_count() const noexcept;
  /// Segment `index` < segment_count(); an empty span beyond.
  std::span<std::byte> segment(std::size_t index) const noexcept;

  /// The bytes [offset, offset + length), as far as they lie in one piece: shorter (down to empty) at the end of a
  /// segment.
  std::span<std::byte> bytes(std::uint64_t offset, std::uint64_t length) const noexcept;
  /// Copies across segments; returns how many bytes fitted.
  std::uint64_t write(std::uint64_t offset, std::span<const std::byte> from) noexcept;
  std::uint64_t read(std::uint64_t offset, std::span<std::byte> to) const noexcept;

  /// Of the last successful add() to a passive queue, valid for one transfer while the buffer stays queued; all zero
  /// before the first. Read it after add() has returned; not while another thread adds the buffer.
  const BufferDescriptor& descriptor() const noexcept;

  /// True from a successful add() to just before the callback of the final event.
  bool is_queued() const noexcept;

 private:
  friend struct BufferState;
  explicit Buffer(BufferState* state) noexcept;

  BufferState* state_;  // counted: this handle, the queue, a callback that runs
};

}  // namespace fairlead::net
