#pragma once
// First calls that the thread with the listener passes to another thread of the host engine, and what wakes that
// thread.

#include <unistd.h>

#include <sys/eventfd.h>

#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include <fairlead/error.hpp>

#include "base/event_descriptor.hpp"
#include "base/file_descriptor.hpp"
#include "host/call.hpp"
#include "host/visitors.hpp"

namespace fairlead::host {

struct FirstCall {
  Visitor visitor;
  Call call;
  shm::Letter letter;
};

class Mailbox {
 public:
  static constexpr std::size_t kMost = 256;

  Result<> open() {
    auto wake = base::open_event_descriptor("the host engine", EFD_NONBLOCK);
    if (!wake) return std::unexpected(std::move(wake.error()));
    wake_ = std::move(*wake);
    calls_.reserve(kMost);
    return {};
  }
  /// Readable when there are calls, or after interrupt().
  int descriptor() const noexcept { return wake_.get(); }

  /// Any thread. Returns false if the mailbox is full; `call` is then unchanged.
  bool put(FirstCall& call) {
    {
      const std::scoped_lock lock(mutex_);
      if (calls_.size() == kMost) return false;
      calls_.push_back(std::move(call));
    }
    ::eventfd_write(wake_.get(), 1);
    return true;
  }
  /// Any thread: the owner's loop shall return.
  void interrupt() {
    {
      const std::scoped_lock lock(mutex_);
      is_interrupted_ = true;
    }
    ::eventfd_write(wake_.get(), 1);
  }

  struct Taken {
    std::vector<FirstCall> calls;
    bool is_interrupted = false;  // then `calls` contains every call that was put before
  };
  /// The owner takes all. Without memory it throws, and nothing is lost.
  Taken take() {
    Taken taken;
    taken.calls.reserve(kMost);
    eventfd_t ignored = 0;
    ::eventfd_read(wake_.get(), &ignored);
    const std::scoped_lock lock(mutex_);
    std::swap(taken.calls, calls_);
    taken.is_interrupted = std::exchange(is_interrupted_, false);
    return taken;
  }

 private:
  base::FileDescriptor wake_;
  std::mutex mutex_;
  std::vector<FirstCall> calls_;
  bool is_interrupted_ = false;
};

}  // namespace fairlead::host
