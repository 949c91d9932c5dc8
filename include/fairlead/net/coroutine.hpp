#pragma once
// The net interface for coroutines: `co_await buffer.add(machine, MessageSend{...})` resumes with the final event. This
// header is optional and not part of net.hpp.

#include <coroutine>
#include <cstdint>
#include <exception>
#include <memory>
#include <utility>

#include <fairlead/net/transfer_machine.hpp>

namespace fairlead::net {

/// The result of an operation: the fields of its final event, or the status of a refused add().
struct Outcome {
  Status status = Status::ok;
  std::uint64_t length = 0, offset = 0;
  EndPoint sender;
};

/// A buffer whose operations are awaited, one at a time; a second one is refused with `bad_state`. The coroutine
/// resumes in the callback of the final event, on the thread that delivers events. It may then await the next operation
/// of the same buffer, or destroy the buffer. Destroying an AwaitedBuffer cancels its operation, and the coroutine
/// resumes with that result. The thread that delivers the events may also destroy a waiting coroutine; then nothing
/// resumes. A receive for several messages reports only the last one, so set messages_max to 1. Does not move.
class AwaitedBuffer {
  struct Waiter {
    std::coroutine_handle<> coroutine;
    Outcome outcome;
  };

 public:
  /// Its callbacks are set here.
  explicit AwaitedBuffer(std::unique_ptr<Buffer> buffer) : buffer_(std::move(buffer)) {
    // In a callback the buffer may be destroyed before its final event is told.
    static_cast<void>(buffer_->set_callback([waiter = waiter_](const BufferEvent& event) {
      if (!event.is_final || !waiter->coroutine) return;
      waiter->outcome = {event.status, event.length, event.offset, event.sender};
      std::exchange(waiter->coroutine, {}).resume();
    }));
  }
  AwaitedBuffer(const AwaitedBuffer&) = delete;
  AwaitedBuffer& operator=(const AwaitedBuffer&) = delete;

  Buffer& operator*() const noexcept { return *buffer_; }
  Buffer* operator->() const noexcept { return buffer_.get(); }

  /// Returns an awaitable that yields an Outcome. It queues the buffer only when it is awaited. If add() refuses, the
  /// coroutine resumes at once.
  template <typename Operation>
  [[nodiscard]] auto add(TransferMachine& machine, const Operation& operation) {
    return Awaiter<Operation>(*this, machine, operation);
  }

 private:
  template <typename Operation>
  class Awaiter {
   public:
    Awaiter(AwaitedBuffer& buffer, TransferMachine& machine, const Operation& operation)
        : buffer_(buffer), machine_(machine), operation_(operation), waiter_(buffer.waiter_) {}
    Awaiter(const Awaiter&) = delete;
    Awaiter& operator=(const Awaiter&) = delete;
    ~Awaiter() {
      if (is_waiting_) waiter_->coroutine = {};  // the coroutine is being destroyed
    }

    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> coroutine) {
      if (waiter_->coroutine) {
        refusal_ = Status::bad_state;
        return false;
      }
      waiter_->coroutine = coroutine;
      is_waiting_ = true;
      const Status status = machine_.add(*buffer_, operation_);
      if (status == Status::ok) return true;  // the coroutine, and this with it, may be gone
      waiter_->coroutine = {};
      refusal_ = status;
      return false;
    }
    Outcome await_resume() {
      is_waiting_ = false;
      if (refusal_ != Status::ok) return {refusal_, 0, 0, {}};
      return std::move(waiter_->outcome);
    }

   private:
    AwaitedBuffer& buffer_;
    TransferMachine& machine_;
    const Operation operation_;
    const std::shared_ptr<Waiter> waiter_;
    Status refusal_ = Status::ok;
    bool is_waiting_ = false;
  };

  const std::shared_ptr<Waiter> waiter_ = std::make_shared<Waiter>();
  const std::unique_ptr<Buffer> buffer_;
};

/// A coroutine that is not awaited. It starts when it is called, and frees its frame when it ends. An exception that
/// leaves it ends the process.
struct Background {
  struct promise_type {
    Background get_return_object() const noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }
  };
};

}  // namespace fairlead::net
