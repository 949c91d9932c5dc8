#include "host/host_connection.hpp"

#include <poll.h>

#include <algorithm>
#include <ctime>

#include "base/log.hpp"

namespace fairlead::host {

void sleep_until_readable(int descriptor, base::Instant deadline) {
  pollfd readable{descriptor, POLLIN, 0};
  sleep_until_readable({&readable, 1}, deadline);
}

void sleep_until_readable(std::span<pollfd> descriptors, base::Instant deadline) {
  const auto left = std::max(deadline - base::MonotonicClock::now(), base::Duration::zero());
  const timespec time{.tv_sec = left.count() / 1'000'000'000, .tv_nsec = left.count() % 1'000'000'000};
  ::ppoll(descriptors.data(), descriptors.size(), deadline == base::kNever ? nullptr : &time, nullptr);
}

bool HostConnection::look_for_end() {
  pollfd closed{socket_.descriptor(), POLLRDHUP, 0};  // also reported while unread nudges are queued
  if (::poll(&closed, 1, 0) == 1) note_end();
  return has_ended();
}

bool HostConnection::wait_until_served(std::uint64_t requests) {
  const std::atomic<std::uint64_t>& served = memory_->page().reply.served;
  return wait_for([&] { return static_cast<std::int64_t>(served.load(std::memory_order_acquire) - requests) >= 0; });
}

void HostConnection::tell_that_it_waits() {
  base::log(
      LogLevel::warning, LogTopic::engine, {},
      "fairleadd has not answered for a second: is it stopped (a signal, a debugger), or does it get no processor? "
      "The call waits for it");
}

}  // namespace fairlead::host
