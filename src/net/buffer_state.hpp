#pragma once
// What a Buffer is behind its handle: memory, callbacks, and the operation that it is in.
//
// Phases: free <-> queued, free -> closed; and pooled, of one in a pool or taken from there by an engine that has not
// told it yet. add() takes a free buffer by one compare-and-swap, so two machines cannot
// both have it; the final event frees it just before its callback. All fields of the operation belong to the machine's
// lock while queued.
//
// How long it lives. While queued it stays, for the handle's destruction waits for the final event; and while that
// event is told, for a machine shows whom it tells, and destruction elsewhere waits until no machine tells this one. So
// an operation costs no count of references. There is one for what is rare: the handle has a reference, which goes to
// the call if a callback destroys its own buffer, and callbacks further up the stack have one each. With the last one
// the memory goes.

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
  /// Who asked first that the operation ends early.
  enum class Ender : std::uint8_t { nobody, owner, deadline };
  using QueueHook = boost::intrusive::list_member_hook<>;

  static BufferState& of(Buffer& buffer) { return *buffer.state_; }
  static const BufferState& of(const Buffer& buffer) { return *buffer.state_; }

  /// The calls of one machine on the stack of the thread that calls back. Callbacks nest if one destroys a buffer.
  class Calling {
   public:
    /// `told`: where the machine shows whose final event it tells.
    explicit Calling(std::atomic<const BufferState*>& told) : told_(told), outer_(innermost) {
      if (outer_ != nullptr) outer_->keep();
      innermost = this;
    }
    ~Calling() { innermost = outer_; }
    Calling(const Calling&) = delete;
    Calling& operator=(const Calling&) = delete;
    /// Before the buffer is free for others.
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
    /// The buffers of all calls of this thread stay until those end, whoever destroys them meanwhile.
    static void keep_all() {
      for (Calling* frame = innermost; frame != nullptr; frame = frame->outer_) frame->keep();
    }
    /// Whether the calling thread is in a callback of the buffer.
    static bool is_inside(const BufferState& buffer) { return outermost(buffer) != nullptr; }
    /// In the buffer's own final callback, which runs once on this thread alone: not the function that runs.
    static bool may_change(const BufferState& buffer, QueueKind kind) {
      const Calling* const frame = innermost;
      return frame != nullptr && frame->buffer_ == &buffer && frame->is_final_ && frame->kind_ != kind &&
             buffer.kind != kind && buffer.phase.load(std::memory_order_acquire) == Phase::free &&
             buffer.references.load(std::memory_order_acquire) == 1;
    }
    /// The handle's reference goes to the call that ends last, or goes.
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
    // Its machine may show another one from now on.
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
    QueueKind kind_ = QueueKind::message_receive;  // whose function runs
  };

  /// The handle that events show when the buffer's own is gone; never destroyed as one.
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
  /// After the final event of a buffer whose handle was destroyed in a callback.
  void end_without_handle();

  /// Names the buffer in the Core's completions; it stays alive while the Core has it.
  std::uint64_t cookie() const { return reinterpret_cast<std::uintptr_t>(this); }
  static BufferState& of(std::uint64_t cookie) { return *std::bit_cast<BufferState*>(cookie); }

  /// It is the caller's.
  void leave_pool() {
    auto expected = Phase::pooled;
    phase.compare_exchange_strong(expected, Phase::free, std::memory_order_acq_rel);
  }

  /// Asks for the memory that an operation needs.
  void fetch() const {
    __builtin_prefetch(&phase, 1);
    __builtin_prefetch(&queue_hook, 1);
    __builtin_prefetch(&domain);
  }

  /// Whether a call has it, on whatever thread. For one that is not queued, and does not come to be.
  bool is_told() const {
    // In this order: who shows another one from now on has counted this one before.
    return domain->is_told(*this) || references.load(std::memory_order_acquire) != 1;
  }
  void release() {
    if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) dispose();
  }

  // What each operation needs lies side by side.
  std::atomic<Phase> phase{Phase::free};  // release when freed, acquire when taken
  std::atomic<bool> is_going{false};      // its handle is being destroyed
  Ender ender = Ender::nobody;
  QueueKind kind = QueueKind::message_receive;
  std::atomic<std::uint32_t> references{1};
  std::atomic<Machine*> machine{nullptr};  // that it is queued with
  std::uint32_t events = 0;                // reserved; 0: an engine has taken it from its pool
  std::uint64_t length = 0;                // of sends: bytes
  Instant added;
  Instant deadline = kNever;
  engine::OperationHandle operation;
  QueueHook queue_hook;
  // For the buffer's life.
  Buffer* face = nullptr;  // null: the handle was destroyed while it was queued
  std::uint64_t size = 0;
  std::vector<iovec> memory;
  std::shared_ptr<DomainState> domain;
  void* user = nullptr;
  PooledBuffer* pooled = nullptr;      // what it is in its pool; null: of none
  base::TimerWheelHook deadline_hook;  // here, so that no callback lies in two lines
  std::array<BufferCallback, kQueueKinds> callbacks;
  base::PageMemory owned;
  std::shared_ptr<std::byte> shared;  // instead: with other buffers, or with peers of this host
  BufferDescriptor descriptor{};      // of an operation

 private:
  void dispose();
};

}  // namespace fairlead::net
