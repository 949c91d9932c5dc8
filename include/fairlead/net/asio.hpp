#pragma once
// The net interface for Asio programs: an io_context runs the events of a transfer machine, and operations take a
// completion token. This header is optional and not part of net.hpp. It is the only public header that includes more
// than the standard library: Boost.Asio of Boost 1.74 or later. A program that defines ASIO_STANDALONE gets the
// standalone Asio, 1.18 or later. A program uses one of the two everywhere. The library itself links neither.
//
//   AsioDelivery delivery(context, machine);  // a started machine with synchronous delivery
//   AsioBuffer buffer(std::move(*Buffer::allocate(domain, 4096)));
//   Outcome got = co_await buffer.async_add(machine, MessageReceive{}, boost::asio::use_awaitable);

#include <fcntl.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#ifdef ASIO_STANDALONE
#include <asio/any_io_executor.hpp>
#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/system_executor.hpp>
#include <asio/version.hpp>
#if ASIO_VERSION >= 101900
#include <asio/associated_cancellation_slot.hpp>
#include <asio/cancellation_type.hpp>
#endif
#else
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/version.hpp>
#if BOOST_ASIO_VERSION >= 101900  // Boost 1.77
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/cancellation_type.hpp>
#endif
#endif

#include <fairlead/net/coroutine.hpp>
#include <fairlead/net/transfer_machine.hpp>

namespace fairlead::net {

#ifdef ASIO_STANDALONE
namespace used_asio = ::asio;
#else
namespace used_asio = boost::asio;
#endif

/// Delivers the events of a machine on the threads that run an executor, one event at a time. The machine must be
/// started and use synchronous delivery. Delivery ends when the machine stops, or with this object's destruction. Like
/// any I/O object of Asio, it must not outlive its executor's context, nor the machine. While it exists, the
/// program must not deliver or wait for the machine's events in another way.
class AsioDelivery {
 public:
  /// Throws the system_error of Asio if the machine is not started, does not deliver synchronously, or if the
  /// process has no free descriptor.
  template <typename Context>
    requires requires(Context& context) { context.get_executor(); }
  AsioDelivery(Context& context, TransferMachine& machine) : AsioDelivery(context.get_executor(), machine) {}
  AsioDelivery(used_asio::any_io_executor executor, TransferMachine& machine)
      : state_(std::make_shared<State>(std::move(executor), machine)) {
    // The machine closes its own when it stops.
    state_->readable.assign(::fcntl(machine.descriptor(), F_DUPFD_CLOEXEC, 0));
    go_on(state_);
  }
  AsioDelivery(const AsioDelivery&) = delete;
  AsioDelivery& operator=(const AsioDelivery&) = delete;
  /// Call it on the executor, or while no thread runs the executor. If several threads run the executor, use a strand.
  ~AsioDelivery() { state_->end(); }

 private:
  static constexpr std::size_t kEventsInTurn = 64;  // then other handlers of the executor have their turn

  struct State {
    State(used_asio::any_io_executor executor, TransferMachine& of) : readable(executor), machine(&of) {}
    void end() {
      machine = nullptr;
      readable.close();
    }
    used_asio::posix::stream_descriptor readable;
    TransferMachine* machine;  // null at the end
  };

  static void go_on(const std::shared_ptr<State>& state) {
    used_asio::post(state->readable.get_executor(), [state] { turn(state); });
  }
  static void turn(const std::shared_ptr<State>& state) {
    if (state->machine == nullptr) return;
    const auto armed = state->machine->arm();
    if (!armed) return state->end();  // it is being stopped
    if (*armed) {
      const auto look = [state](const auto& error) {
        if (!error) turn(state);
      };
      return state->readable.async_wait(used_asio::posix::stream_descriptor::wait_read, look);
    }
    static_cast<void>(state->machine->deliver_all(kEventsInTurn));  // may destroy the AsioDelivery, not the state
    if (state->machine != nullptr) go_on(state);
  }

  std::shared_ptr<State> state_;
};

/// A buffer whose operations complete with a token, one operation at a time. A second operation completes with the
/// Outcome bad_state. The machine may use either way of delivery. The handler runs on its own executor, never inside
/// async_add(); it may add the same buffer again. A receive for several messages reports only the last one, so set
/// messages_max to 1. Destroying an AsioBuffer cancels its operation. The handler still receives that Outcome, so its
/// executor must live until then. Does not move.
class AsioBuffer {
 public:
  /// Sets the buffer's callbacks.
  explicit AsioBuffer(std::unique_ptr<Buffer> buffer) : buffer_(std::move(buffer)) {
    // In a callback the buffer may be destroyed before its final event is told.
    static_cast<void>(buffer_->set_callback([slot = slot_](const BufferEvent& event) {
      if (event.is_final) slot->complete({event.status, event.length, event.offset, event.sender});
    }));
  }
  AsioBuffer(const AsioBuffer&) = delete;
  AsioBuffer& operator=(const AsioBuffer&) = delete;
  ~AsioBuffer() { slot_->machine = nullptr; }

  Buffer& operator*() const noexcept { return *buffer_; }
  Buffer* operator->() const noexcept { return buffer_.get(); }

  /// Adds the buffer. Completes with the Outcome of its final event, or with the status of a refused add(). Signature:
  /// void(Outcome). Since Asio 1.19 (Boost 1.77), a terminal cancellation through the handler's slot cancels the
  /// operation. Its Outcome is then `canceled`, or the actual result if the operation finished first.
  template <typename Operation, typename Token>
  auto async_add(TransferMachine& machine, const Operation& operation, Token&& token) {
    const auto begin = [this, &machine, operation](auto handler) {
      auto waiter = std::make_unique<WaiterOf<decltype(handler)>>(std::move(handler));
      if (slot_->is_taken.exchange(true)) return waiter->complete({Status::bad_state, 0, 0, {}});
      const auto slot = slot_;  // this may be gone after the add()
      slot->machine = &machine;
      waiter->watch_cancellation([slot, number = ++slot->number, buffer = buffer_.get()] {
        TransferMachine* const adder = slot->machine;
        if (adder != nullptr && slot->number == number) static_cast<void>(adder->cancel(*buffer));
      });
      slot->waiter = std::move(waiter);
      if (const Status status = machine.add(*buffer_, operation); status != Status::ok)
        slot->complete({status, 0, 0, {}});
    };
    return used_asio::async_initiate<Token, void(Outcome)>(begin, token);
  }

 private:
  struct Waiter {
    virtual ~Waiter() = default;
    virtual void complete(Outcome outcome) = 0;
  };
  /// Holds a work guard on the handler's executor.
  template <typename Handler>
  class WaiterOf final : public Waiter {
   public:
    explicit WaiterOf(Handler handler)
        : handler_(std::move(handler)),
          work_(used_asio::get_associated_executor(handler_, used_asio::system_executor())) {}
    void complete(Outcome outcome) override {
      auto call = [handler = std::move(handler_), outcome = std::move(outcome)]() mutable {
        forget_cancellation(handler);
        std::move(handler)(std::move(outcome));
      };
      used_asio::post(work_.get_executor(), std::move(call));
    }
    template <typename Cancel>
    void watch_cancellation([[maybe_unused]] Cancel cancel) {
#if (defined(ASIO_STANDALONE) ? ASIO_VERSION : BOOST_ASIO_VERSION) >= 101900
      using Type = used_asio::cancellation_type;
      const auto on_signal = [cancel = std::move(cancel)](Type type) {
        if ((type & Type::terminal) != Type::none) cancel();
      };
      if (auto from = used_asio::get_associated_cancellation_slot(handler_); from.is_connected())
        from.assign(on_signal);
#endif
    }

   private:
    static void forget_cancellation([[maybe_unused]] Handler& handler) {
#if (defined(ASIO_STANDALONE) ? ASIO_VERSION : BOOST_ASIO_VERSION) >= 101900
      if (auto from = used_asio::get_associated_cancellation_slot(handler); from.is_connected()) from.clear();
#endif
    }

    Handler handler_;
    used_asio::executor_work_guard<used_asio::associated_executor_t<Handler, used_asio::system_executor>> work_;
  };
  struct Slot {
    void complete(Outcome outcome) {
      const auto done = std::move(waiter);
      machine = nullptr;
      is_taken = false;  // the handler may take it again at once
      done->complete(std::move(outcome));
    }
    std::atomic<bool> is_taken = false;
    std::atomic<TransferMachine*> machine = nullptr;  // of the operation; null if there is none, or no buffer any more
    std::atomic<std::uint64_t> number = 0;            // of the operation
    std::unique_ptr<Waiter> waiter;
  };

  const std::shared_ptr<Slot> slot_ = std::make_shared<Slot>();
  const std::unique_ptr<Buffer> buffer_;
};

}  // namespace fairlead::net
