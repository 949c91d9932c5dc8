#include <fairlead/net/transfer_machine.hpp>

#include <poll.h>

#include <algorithm>
#include <vector>

#include "base/processor.hpp"
#include "net/clock.hpp"

namespace fairlead::net {
namespace {

constexpr Duration kLookFor = std::chrono::microseconds(20);

int milliseconds_until(Instant deadline) {
  constexpr Duration kMost = std::chrono::hours(1);
  if (deadline == kNever) return -1;
  const Duration left = std::clamp(deadline - now(), Duration::zero(), kMost);
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
}

}  // namespace

std::expected<std::size_t, Status> TransferMachine::wait_any(std::span<TransferMachine* const> machines,
                                                             Instant deadline) {
  if (machines.empty()) return std::unexpected(Status::invalid);
  const auto find_pending = [&] { return std::ranges::find_if(machines, [](auto* one) { return one->pending(); }); };
  const Instant begin = now();
  do {
    if (const auto found = find_pending(); found != machines.end())
      return static_cast<std::size_t>(found - machines.begin());
    base::relax();
  } while (now() - begin < kLookFor);
  std::vector<pollfd> all;
  all.reserve(machines.size());
  for (;;) {
    all.clear();
    for (TransferMachine* const machine : machines) {
      const auto is_armed = machine->arm();
      if (!is_armed) return std::unexpected(is_armed.error());
      if (!*is_armed) return all.size();
      const int descriptor = machine->descriptor();
      // The machine has stopped meanwhile and would not wake this thread.
      if (descriptor < 0) return std::unexpected(Status::bad_state);
      all.push_back({descriptor, POLLIN, 0});
    }
    if (now() >= deadline) return std::unexpected(Status::timed_out);
    ::poll(all.data(), all.size(), milliseconds_until(deadline));
  }
}

}  // namespace fairlead::net
