#pragma once
// The net face for coroutines: `co_await buffer.add(machine, MessageSend{...})` goes on with the final event. Optional;
// not part of net.hpp.

#include <coroutine>
#include <cstdint>
#include <exception>
#include <memory>
#include <utility>

#include <fairlead/net/transfer_machine.hpp>

namespace fairlead::net {

/// How an operation ended, or why add() refused it; the fields are those of its final event.
struct Outcome {
  Status status = Status::ok;
  std::uint64_t length = 0, offset = 0;
  EndPoint sender;
};

/// A buffer whose operations are awaited, one at a time. The coroutine goes on in the callback of the final event, on
/// the thread that delivers it, and may await the next operation, also of the same buffer, or destroy it. A receive for
/// several messages tells of the last one alone: let messages_max be 1. Does not move.
class AwaitedBuffer {
 public:
  /// Its callbacks are set here.
  explicit AwaitedBuffer(std::unique_ptr<Buffer> buffer) : buffer_(std::move(buffer)) {
    static_cast<void>(buffer_->set_callback([this](const BufferEvent& event) {
      if (event.is_final) resume(event);
    }));
  }
  AwaitedBuffer(const AwaitedBuffer&) = delete;
  AwaitedBuffer& operator=(const AwaitedBuffer&) = delete;

  Buffer& operator*() const noexcept { return *buffer_; }
  Buffer* operator->() const noexcept { return buffer_.get(); }

  /// To be awaited: an Outcome. Nothing is queued before that. Where add() refuses, the coroutine goes on at once.
  template <typename Operation>
  [[nodiscard]] auto add(TransferMachine& machine, const Operation& operation) {
    struct Awaiter {
      bool await_ready() const noexcept { return false; }
      bool await_suspend(std::coroutine_handle<> coroutine) {
        AwaitedBuffer& own = buffer;  // after a successful add() the coroutine, and this with it, may be gone
        own.waiting_ = coroutine;
        const Status status = machine.add(*own.buffer_, operation);
        if (status == Status::ok) return true;
        own.outcome_ = {status, 0, 0, {}};
        return false;
      }
      Outcome await_resume() { return std::move(buffer.outcome_); }

      AwaitedBuffer& buffer;
      TransferMachine& machine;
      Operation operation;
    };
    return Awaiter{*this, machine, operation};
  }

 private:
  void resume(const BufferEvent& event) {
    outcome_ = {event.status, event.length, event.offset, event.sender};
    std::exchange(waiting_, {}).resume();
  }

  Outcome outcome_;
  std::coroutine_handle<> waiting_;
  std::unique_ptr<Buffer> buffer_;  // gone first: nobody resumes then
};

/// A coroutine that nobody awaits: it begins when it is called, and goes with its end. What leaves it ends the process.
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
