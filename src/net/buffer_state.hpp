#pragma once
// BufferState is the object behind a Buffer handle: the memory, the callbacks and the current operation.
//
// Phases: free <-> queued and free -> closed. `pooled` means that the buffer is in a pool, or that an engine took it
// from there and has delivered no event for it yet. add() claims a free buffer with one compare-and-swap, so two
// machines cannot both own it. The final event sets the phase back to free just before its callback runs. While the
// buffer is queued, the machine's lock guards all fields of the operation.
//
// Lifetime: a queued buffer stays alive because the handle's destructor waits for the final event. During the final
// callback, the machine publishes which buffer it delivers; a destructor on another thread waits until no machine
// publishes this buffer. An operation therefore costs no reference count. References serve the rare case only: the
// handle holds one. If a callback destroys its own buffer, the handle's reference moves to that call, and each outer
// callback on the stack holds one. Releasing the last reference frees the memory.

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include <sys/uio.h>
#include <boost/intrusive/list_hook.hpp>

#include <fairlead/net/buffer.hpp>

#include "base/page_memory.hpp"
#include "base/timer_wheel.hpp"
#include "engine/core.hpp"
#include "net/domain_state.hpp"

namespace fairlead::net {

struct PooledBuffer;

struct alignas(64) BufferState {
  enum class Phase : std::uint8_t { free, queued, closed, pooled };
  /// Who was first to request an early end of the operation.
  enum class Ender : std::uint8_t { nobody, owner, deadline };
  using QueueHook = boost::intrusive::list_member_hook<>;

  static BufferState& of(Buffer& buffer) { return *buffer.state_; }
  static const BufferState& of(const Buffer& buffer) { return *buffer.state_; }

  /// One frame per machine that is calling back on this thread. Frames nest if a callback destroys a buffer.
  class Calling {
   public:
    /// `told` is where the machine publishes the buffer whose final event it delivers.
    explicit Calling(std::atomic<const BufferState*>& told) : told_(told), outer_(innermost) {
      if (outer_ != nullptr) outer_->keep();
      innermost = this;
    }
    ~Calling() { innermost = outer_; }
    Calling(const Calling&) = delete;
    Calling& operator=(const Calling&) = delete;
    /// The caller must call this before the buffer becomes free for other threads.
    void begin(BufferState& buffer, bool is_final) {
      buffer_ = &buffer;
      is_final_ = is_final;
      kind_ = buffer.kind;
      if (is_final) told_.store(&buffer, std::memory_order_release);
    }
    void end() {
      if (is_final_) told_.store(nullptr, std::memory_order_release);
      BufferState* buffer = std::exchange(buffer_, nullptr);
      if (has_reference_) [[unlikely]] {
        has_reference_ = false;
        buffer->release();
      }
    }
    /// Keeps the buffers of all callbacks on this thread alive until those callbacks return, even if another thread
    /// destroys the handles.
    static void keep_all() {
      for (Calling* frame = innermost; frame != nullptr; frame = frame->outer_) frame->keep();
    }
    /// Returns whether the calling thread is inside a callback of the buffer.
    static bool is_inside(const BufferState& buffer) { return outermost(buffer) != nullptr; }
    /// Returns whether the callback of `kind` may be replaced from within the buffer's own final callback. That
    /// callback runs once, on this thread alone. The function that is running cannot be replaced.
    static bool may_change(const BufferState& buffer, QueueKind kind) {
      const Calling* const frame = innermost;
      return frame != nullptr && frame->buffer_ == &buffer && frame->is_final_ && frame->kind_ != kind &&
             buffer.kind != kind && buffer.phase.load(std::memory_order_acquire) == Phase::free &&
             buffer.references.load(std::memory_order_acquire) == 1;
    }
    /// Transfers the handle's reference to the outermost callback of the buffer on this thread. Releases it if there
    /// is none, or if that callback holds a reference already.
    static void inherit(BufferState& buffer) {
      Calling* frame = outermost(buffer);
      if (frame != nullptr && !frame->has_reference_) {
        frame->has_reference_ = true;
      } else {
        buffer.release();
      }
    }

   private:
    static Calling* outermost(const BufferState& buffer) {
      Calling* found = nullptr;
      for (Calling* frame = innermost; frame != nullptr; frame = frame->outer_)
        if (frame->buffer_ == &buffer) found = frame;
      return found;
    }
    // Takes a reference: from now on the machine may publish another buffer.
    void keep() {
      if (buffer_ == nullptr || has_reference_) return;
      buffer_->references.fetch_add(1, std::memory_order_relaxed);
      has_reference_ = true;
    }

    static constinit thread_local Calling* innermost;
    std::atomic<const BufferState*>& told_;
    BufferState* buffer_ = nullptr;
    Calling* outer_;
    bool is_final_ = false, has_reference_ = false;
    QueueKind kind_ = QueueKind::message_receive;  // the queue whose callback runs
  };

  /// A stand-in handle for events whose buffer has lost its own handle. It is never destroyed as a Buffer.
  class StandIn {
   public:
    Buffer& of(BufferState& buffer) {
      Buffer* const made = new (place_) Buffer(&buffer);
      buffer.face = nullptr;
      return *made;
    }

   private:
    alignas(Buffer) std::byte place_[sizeof(Buffer)];
  };
  /// Disposes of a buffer after its final event, if a callback destroyed the handle.
  void end_without_handle();

  /// Identifies the buffer in the Core's completions. The buffer stays alive while the Core holds it.
  std::uint64_t cookie() const { return reinterpret_cast<std::uintptr_t>(this); }
  static BufferState& of(std::uint64_t cookie) { return *std::bit_cast<BufferState*>(cookie); }

  /// Changes the phase from pooled to free: the caller owns the buffer now.
  void leave_pool() {
    auto expected = Phase::pooled;
    phase.compare_exchange_strong(expected, Phase::free, std::memory_order_acq_rel);
  }

  /// Prefetches the cache lines that an operation needs.
  void fetch() const {
    __builtin_prefetch(&phase, 1);
    __builtin_prefetch(&queue_hook, 1);
    __builtin_prefetch(&domain);
  }

  /// Returns whether a callback uses the buffer on any thread. The buffer must not be queued, and nobody may queue it
  /// meanwhile.
  bool is_told() const {
    // The order matters: a thread takes its reference before it publishes another buffer.
    return domain->is_told(*this) || references.load(std::memory_order_acquire) != 1;
  }
  void release() {
    if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) dispose();
  }

  // Every operation uses the following fields, so they lie side by side.
  std::atomic<Phase> phase{Phase::free};  // release when freed, acquire when taken
  std::atomic<bool> is_going{false};      // the handle is being destroyed
  Ender ender = Ender::nobody;
  QueueKind kind = QueueKind::message_receive;
  std::atomic<std::uint32_t> references{1};
  std::atomic<Machine*> machine{nullptr};  // the machine that it is queued with
  std::uint32_t events = 0;                // reserved; 0 if an engine took the buffer from its pool
  std::uint64_t length = 0;                // bytes to send; for sends only
  Instant added;
  Instant deadline = kNever;
  engine::OperationHandle operation;
  QueueHook queue_hook;
  // The following fields keep their values for the buffer's life.
  Buffer* face = nullptr;  // null: the handle was destroyed while the buffer was queued
  std::uint64_t size = 0;
  std::vector<iovec> memory;
  std::shared_ptr<DomainState> domain;
  void* user = nullptr;
  PooledBuffer* pooled = nullptr;      // the entry in its pool; null: of no pool
  base::TimerWheelHook deadline_hook;  // placed here so that no callback spans two cache lines
  std::array<BufferCallback, kQueueKinds> callbacks;
  base::PageMemory owned;
  std::shared_ptr<std::byte> shared;  // used instead of `owned`: shared with other buffers or with local peers
  BufferDescriptor descriptor{};      // of the current operation

 private:
  void dispose();
};

}  // namespace fairlead::net
