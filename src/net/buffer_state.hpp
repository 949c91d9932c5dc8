#pragma once
// What a Buffer is behind its handle: memory, callbacks, and the operation that it is in.
//
// Phases: free <-> queued, free -> closed. add() takes a free buffer by one compare-and-swap, so two machines cannot
// both have it; the final event frees it just before its callback. All fields of the operation belong to the machine's
// lock while queued.
//
// References: the handle, the queue, then the callback of the final event. With the last one the memory goes, so a
// callback may destroy its own buffer. Destruction elsewhere waits for the callback, which has the handle.

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <sys/uio.h>
#include <boost/intrusive/list_hook.hpp>
#include <boost/intrusive/set_hook.hpp>

#include <fairlead/net/buffer.hpp>

#include "base/page_memory.hpp"
#include "engine/core.hpp"
#include "net/domain_state.hpp"

namespace fairlead::net {

struct BufferState {
  enum class Phase : std::uint8_t { free, queued, closed };
  /// Who asked first that the operation ends early.
  enum class Ender : std::uint8_t { nobody, owner, deadline };
  using QueueHook = boost::intrusive::list_member_hook<>;
  using DeadlineHook = boost::intrusive::set_member_hook<boost::intrusive::optimize_size<true>>;

  static BufferState& of(Buffer& buffer) { return *buffer.state_; }
  static const BufferState& of(const Buffer& buffer) { return *buffer.state_; }

  /// Marks, on the stack of the thread that calls back, whose callback runs. Callbacks nest if one destroys a buffer.
  /// A final event brings the queue's reference along, to be dropped after the callback. The others need none: while
  /// one is told, nobody else can tell the final event. If the callback itself makes it come, the reference goes to the
  /// outer call.
  class Calling {
   public:
    Calling() : outer_(innermost) { innermost = this; }
    ~Calling() { innermost = outer_; }
    Calling(const Calling&) = delete;
    Calling& operator=(const Calling&) = delete;
    void begin(BufferState& buffer, bool has_reference) {
      buffer_ = &buffer;
      has_reference_ = has_reference;
    }
    void end() {
      BufferState* buffer = std::exchange(buffer_, nullptr);
      if (!has_reference_) return;
      Calling* frame = outer_;
      while (frame != nullptr && (frame->buffer_ != buffer || frame->has_reference_)) frame = frame->outer_;
      frame != nullptr ? static_cast<void>(frame->has_reference_ = true) : buffer->release();
    }
    /// Whether the calling thread is in a callback of the buffer.
    static bool is_inside(const BufferState& buffer) {
      const Calling* frame = innermost;
      while (frame != nullptr && frame->buffer_ != &buffer) frame = frame->outer_;
      return frame != nullptr;
    }

   private:
    static constinit thread_local Calling* innermost;
    BufferState* buffer_ = nullptr;
    Calling* outer_;
    bool has_reference_ = false;
  };

  /// Names the buffer in the Core's completions; it stays alive while the Core has it.
  std::uint64_t cookie() const { return reinterpret_cast<std::uintptr_t>(this); }
  static BufferState& of(std::uint64_t cookie) { return *std::bit_cast<BufferState*>(cookie); }

  void refer() { references.fetch_add(1, std::memory_order_relaxed); }
  void release() {
    if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  // For the buffer's life.
  std::shared_ptr<DomainState> domain;
  base::PageMemory owned;
  std::shared_ptr<std::byte> shared;  // instead: memory that peers of this host reach by themselves
  std::vector<iovec> memory;
  std::uint64_t size = 0;
  std::array<BufferCallback, kQueueKinds> callbacks;
  Buffer* face = nullptr;
  std::atomic<std::uint32_t> references{1};
  std::atomic<Phase> phase{Phase::free};   // release when freed, acquire when taken
  std::atomic<bool> is_going{false};       // its handle is being destroyed
  std::atomic<Machine*> machine{nullptr};  // that it is queued with

  // Of the operation.
  QueueKind kind = QueueKind::message_receive;
  Ender ender = Ender::nobody;
  std::uint32_t events = 0;  // reserved
  std::uint64_t length = 0;  // of sends: bytes
  Instant added;
  Instant deadline = kNever;
  engine::OperationHandle operation;
  BufferDescriptor descriptor{};
  QueueHook queue_hook;
  DeadlineHook deadline_hook;
};

}  // namespace fairlead::net
