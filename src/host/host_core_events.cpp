// Events from the host engine, and waiting for them.

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "host/give_way.hpp"
#include "host/host_core.hpp"

namespace fairlead::host {
namespace {

constexpr base::Duration kNapAfterTheEnd = std::chrono::milliseconds(5);

void scatter(std::span<const iovec> memory, std::uint64_t offset, std::uint64_t length, const std::byte* from) {
  for (const iovec& piece : memory) {
    if (offset >= piece.iov_len) {
      offset -= piece.iov_len;
      continue;
    }
    const std::uint64_t part = std::min<std::uint64_t>(piece.iov_len - offset, length);
    if (part == 0) return;
    std::memcpy(static_cast<std::byte*>(piece.iov_base) + offset, from, part);
    from += part;
    length -= part;
    offset = 0;
  }
}

/// Ports on which a thread sleeps.
class ArmedPorts {
 public:
  /// Returns false if the wait is over.
  template <typename IsOver>
  bool arm(ClientPort& port, IsOver&& is_over) {
    if (!port.arm(is_over)) return false;
    ports_[count_] = &port;
    descriptors_[count_++] = {port.socket().descriptor(), POLLIN, 0};
    return true;
  }
  void sleep(base::Instant deadline) { sleep_until_readable(std::span(descriptors_).first(count_), deadline); }
  /// Returns false if the host engine has ended.
  bool disarm() {
    bool lives = true;
    for (std::size_t i = 0; i < count_; ++i) lives &= ports_[i]->disarm();
    return lives;
  }

 private:
  std::array<ClientPort*, engine::ActivePorts::kWaitPortsMax> ports_;
  std::array<pollfd, engine::ActivePorts::kWaitPortsMax> descriptors_;
  std::size_t count_ = 0;
};

}  // namespace

std::size_t HostCore::next_events(engine::PortHandle handle, std::span<engine::Completion> to) {
  ClientPort& port = find(handle);
  std::size_t count = port.next(
      to, [&](const Event& event, engine::Completion& completion) { return take_event(handle, event, completion); });
  if (count < to.size() && has_ended()) count += end_all(handle, to.subspan(count));
  if (count > 0) fill_up(handle);
  return count;
}

/// Returns false if the event names nothing pending at this port, which a correct host engine never does.
bool HostCore::take_event(engine::PortHandle handle, const Event& event, engine::Completion& completion) {
  std::unique_lock lock(mutex_);
  ClientOperation* const operation = operations_.find(event.operation);
  if (operation == nullptr || operation->port != handle.slot) return false;
  lock.unlock();
  completion = {.cookie = operation->cookie,
                .length = event.length,
                .offset = event.offset,
                .time_ns = event.time_ns,
                .source = {from_plain(event.source), event.source_port},
                .status = status_from(event.status),
                .is_final = (event.flags & Event::kIsFinal) != 0};
  const std::uint64_t offset = operation->kind == Request::Kind::receive ? event.offset : 0;
  if (offset > operation->length || event.length > operation->length - offset) {
    // The host engine named bytes that do not exist.
    if (operation->takes_bytes) completion.length = completion.offset = 0;
  } else if (operation->block != nullptr && operation->takes_bytes && event.length > 0) {
    scatter(operation->memory, offset, event.length, operation->block + offset);
    counters_.copied_bytes.fetch_add(event.length, std::memory_order_relaxed);
  }
  lock.lock();
  idle_polls_.found();
  if (completion.is_final) end(*operation);
  return true;
}

/// The caller holds the lock.
void HostCore::end(ClientOperation& operation) {
  if (operation.block != nullptr)
    host_.memory().give_back_block(std::exchange(operation.block, nullptr), operation.length);
  if (operation.is_spare) --ports_[operation.port]->spares.posted;
  operations_.release(operation);
}

/// The host engine has ended: ends everything that was pending there.
std::size_t HostCore::end_all(engine::PortHandle handle, std::span<engine::Completion> to) {
  const std::scoped_lock lock(mutex_);
  const auto index = static_cast<std::uint16_t>(handle.slot);
  std::size_t count = 0;
  std::uint32_t from = 0;
  while (count < to.size()) {
    ClientOperation* const operation = operations_.first_of(index, from);
    if (operation == nullptr) break;
    from = ClientOperations::handle_of(*operation).slot + 1;
    to[count++] = {.cookie = operation->cookie,
                   .time_ns = base::MonotonicClock::now().time_since_epoch().count(),
                   .status = Status::restarted};
    end(*operation);
  }
  return count;
}

bool HostCore::has_event(engine::PortHandle handle) const {
  if (find(handle).has_event()) return true;
  if (!has_ended()) return false;
  const std::scoped_lock lock(mutex_);
  return operations_.first_of(static_cast<std::uint16_t>(handle.slot)) != nullptr;
}

// Spares -------------------------------------------------------------------------------------------------------------

void HostCore::set_spares(engine::PortHandle handle, const engine::SparePlan& plan) {
  ClientPort& port = find(handle);
  bool is_first = false;
  std::uint32_t surplus = 0;  // for other ports
  {
    const std::scoped_lock lock(mutex_);
    is_first = port.spares.plan.spares == nullptr;
    port.spares.plan = plan;
    surplus = port.spares.posted - std::min(port.spares.posted, std::max(plan.length, plan.share));
  }
  if (plan.spares) {
    cancel_spares(handle, surplus);
    const auto last = fill_up(handle);
    if (is_first && last) host_.wait_until_served(*last);  // messages sent from now on find a buffer
    return;
  }
  cancel_spares(handle, ~0U);
}

/// Spares whose events have not been taken yet count as posted.
void HostCore::cancel_spares(engine::PortHandle handle, std::uint32_t count) {
  std::unique_lock lock(mutex_);
  const auto index = static_cast<std::uint16_t>(handle.slot);
  for (auto* spare = operations_.first_of(index); spare != nullptr && count > 0;) {
    const engine::OperationHandle operation = ClientOperations::handle_of(*spare);
    if (spare->is_spare) {
      lock.unlock();
      cancel(handle, operation);
      lock.lock();
      --count;
    }
    spare = operations_.first_of(index, operation.slot + 1);
  }
}

void HostCore::grant_spares(engine::PortHandle handle, std::uint32_t count) {
  {
    const std::scoped_lock lock(mutex_);
    find(handle).spares.granted += count;
  }
  fill_up(handle);
}

engine::SpareCounts HostCore::spare_counts(engine::PortHandle handle) const {
  const std::scoped_lock lock(mutex_);
  const ClientSpares& spares = find(handle).spares;
  const std::uint32_t wanted = spares.plan.spares ? spares.plan.length : 0;
  return {.posted = spares.posted,
          .missing = wanted > spares.posted ? wanted - spares.posted : 0,
          .unended = spares.posted};
}

// An embedded engine takes more spares when a message finds no buffer. The host engine cannot reach them, so it gets
// this port's share in advance. Returns the number of the last request.
std::optional<std::uint64_t> HostCore::fill_up(engine::PortHandle handle) {
  ClientPort& port = find(handle);
  std::optional<std::uint64_t> last;
  for (;;) {
    std::unique_lock lock(mutex_);
    const engine::SparePlan plan = port.spares.plan;
    if (!plan.spares || port.spares.granted == 0) return last;
    if (port.spares.posted >= std::max(plan.length, plan.share)) return last;
    ++port.spares.posted;
    --port.spares.granted;
    lock.unlock();
    engine::Spare* const spare = plan.spares->take(plan.colour);
    std::uint64_t number = 0;
    Status status = Status::no_memory;
    if (spare != nullptr) {
      const engine::Receive receive{.memory = spare->memory,
                                    .size_min = plan.size_min,
                                    .messages_max = plan.messages_max,
                                    .cookie = spare->cookie};
      status = post(handle, receive, true, spare->operation, number);
    }
    if (status == Status::ok) {
      last = number;
      continue;
    }
    lock.lock();
    const bool may_stop = --port.spares.posted >= plan.length || status != Status::again;
    ++port.spares.granted;
    lock.unlock();
    if (!may_stop) {
      plan.spares->put(*spare, plan.colour);
      std::this_thread::yield();  // the ring is full, but not for long
      continue;
    }
    if (spare == nullptr) {
      plan.spares->want();
    } else {
      plan.spares->put(*spare, plan.colour);
    }
    return last;
  }
}

// Waiting ------------------------------------------------------------------------------------------------------------

bool HostCore::wait(engine::PortHandle handle, base::Instant deadline) {
  return wait_any({&handle, 1}, deadline);
}

bool HostCore::wait_any(std::span<const engine::PortHandle> handles, base::Instant deadline) {
  const auto is_over = [&] {
    return std::ranges::any_of(handles, [&](engine::PortHandle handle) {
      const ClientPort& port = find(handle);
      return port.is_interrupted() || port.has_arrival() || has_event(handle) || (has_ended() && !port.has_told_end());
    });
  };
  auto wait = host_.ladder().begin(base::MonotonicClock::now());
  while (!host_.spin(is_over, wait, deadline)) {
    if (base::MonotonicClock::now() >= deadline) break;
    if (has_ended()) {  // only our own threads wake us now
      sleep_until_readable(-1, std::min(deadline, base::MonotonicClock::now() + kNapAfterTheEnd));
    } else {
      ArmedPorts armed;
      const bool are_armed =
          std::ranges::all_of(handles, [&](auto handle) { return armed.arm(find(handle), is_over); });
      if (are_armed) armed.sleep(deadline);
      if (!armed.disarm()) host_.note_end();
    }
    host_.ladder().slept(wait, base::MonotonicClock::now());
  }
  host_.ladder().end(wait, base::MonotonicClock::now());
  bool has_news = false;
  for (const engine::PortHandle handle : handles) {
    ClientPort& port = find(handle);
    port.forget_interrupt();
    if (has_ended()) port.tell_end();
    has_news |= port.has_arrival() || has_event(handle);
  }
  return has_news;
}

bool HostCore::arm_descriptor(engine::PortHandle handle) {
  ClientPort& port = find(handle);
  if (!port.disarm()) host_.note_end();
  const bool is_armed = port.arm([&] { return port.is_interrupted() || port.has_arrival() || has_event(handle); });
  if (!is_armed) port.forget_losses();  // reported once
  return is_armed;
}

// The host engine makes progress by itself. A poller only checks here whether it has ended.
bool HostCore::progress() {
  host_.look_for_end_at_times();
  return false;
}

void HostCore::give_way() {
  host::give_way(idle_polls_, mutex_);
}

bool HostCore::wait_until_all_are_served() {
  std::unique_lock lock(mutex_);
  const std::uint64_t number = requests_->produced();
  lock.unlock();
  host_.wake();
  return host_.wait_until_served(number);
}

/// Waits for the answer to a request. The caller has held call_mutex_ since it made the request.
Status HostCore::wait_for_reply(std::uint64_t number, std::uint64_t& key) {
  if (!host_.wait_until_served(number)) return Status::restarted;
  const ReplyCell& reply = host_.memory().page().reply;
  key = reply.key.load(std::memory_order_relaxed);
  return status_from(reply.status.load(std::memory_order_relaxed));
}

}  // namespace fairlead::host
