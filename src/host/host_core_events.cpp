// Events on their way from the host engine, and waiting for them.

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/processor.hpp"
#include "host/host_core.hpp"

namespace fairlead::host {
namespace {

constexpr base::Duration kNapAfterTheEnd = std::chrono::milliseconds(5), kNapForReply = std::chrono::seconds(1);
constexpr std::uint32_t kLooksBetweenCalls = 4096;  // in vain, before the kernel is asked whether the other side lives

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

void sleep_until(int descriptor, base::Instant deadline) {
  const auto left = std::max(deadline - base::MonotonicClock::now(), base::Duration::zero());
  const timespec time{.tv_sec = left.count() / 1'000'000'000, .tv_nsec = left.count() % 1'000'000'000};
  pollfd readable{descriptor, POLLIN, 0};
  ::ppoll(&readable, 1, deadline == base::kNever ? nullptr : &time, nullptr);
}

}  // namespace

std::size_t HostCore::next_events(engine::PortHandle handle, std::span<engine::Completion> to) {
  ClientPort& port = find(handle);
  std::size_t count = port.next(
      to, [&](const Event& event, engine::Completion& completion) { return take_event(handle, event, completion); });
  if (count < to.size() && has_ended()) count += end_all(handle, to.subspan(count));
  if (count > 0) fill_up(handle);
  return count;
}

/// False if the host engine names nothing that is pending at this port, which it never does.
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
    if (operation->takes_bytes) completion.length = completion.offset = 0;  // there are no such bytes
  } else if (operation->block != nullptr && operation->takes_bytes && event.length > 0) {
    scatter(operation->memory, offset, event.length, operation->block + offset);
    counters_.copied_bytes.fetch_add(event.length, std::memory_order_relaxed);
  }
  lock.lock();
  idle_polls_.found();
  if (completion.is_final) end(*operation);
  return true;
}

/// Under the lock.
void HostCore::end(ClientOperation& operation) {
  if (operation.block != nullptr) memory_->give_back_block(std::exchange(operation.block, nullptr), operation.length);
  if (operation.is_spare) --ports_[operation.port]->spares.posted;
  operations_.release(operation);
}

/// The host engine has ended: so does what it had.
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
  {
    const std::scoped_lock lock(mutex_);
    port.spares.plan = plan;
  }
  if (plan.spares) return fill_up(handle);
  std::unique_lock lock(mutex_);
  const auto index = static_cast<std::uint16_t>(handle.slot);
  for (auto* spare = operations_.first_of(index); spare != nullptr;) {
    const engine::OperationHandle operation = ClientOperations::handle_of(*spare);
    if (spare->is_spare) {
      lock.unlock();
      cancel(handle, operation);
      lock.lock();
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

// Posts as many ahead as the plan wants. Unlike an engine of this process, the host engine has no more than those.
void HostCore::fill_up(engine::PortHandle handle) {
  ClientPort& port = find(handle);
  for (;;) {
    std::unique_lock lock(mutex_);
    const engine::SparePlan plan = port.spares.plan;
    if (!plan.spares || port.spares.posted >= plan.length || port.spares.granted == 0) return;
    ++port.spares.posted;
    --port.spares.granted;
    lock.unlock();
    engine::Spare* const spare = plan.spares->take(plan.colour);
    if (spare != nullptr && post_spare(handle, plan, *spare) == Status::ok) continue;
    lock.lock();
    --port.spares.posted;
    ++port.spares.granted;
    lock.unlock();
    if (spare == nullptr) return plan.spares->want();
    plan.spares->put(*spare, plan.colour);
    return;
  }
}

// Waiting ------------------------------------------------------------------------------------------------------------

bool HostCore::wait(engine::PortHandle handle, base::Instant deadline) {
  ClientPort& port = find(handle);
  const auto is_over = [&] {
    return port.is_interrupted() || has_event(handle) || (has_ended() && !port.has_told_end());
  };
  auto wait = ladder_.begin(base::MonotonicClock::now());
  while (!spin(is_over, wait, deadline)) {
    if (base::MonotonicClock::now() >= deadline) break;
    if (has_ended()) {  // nobody wakes us any more but our own threads
      sleep_until(-1, std::min(deadline, base::MonotonicClock::now() + kNapAfterTheEnd));
    } else if (port.arm(is_over)) {
      sleep_until(port.socket().descriptor(), deadline);
      if (!port.disarm()) has_ended_.store(true, std::memory_order_release);
    }
    ladder_.slept(wait, base::MonotonicClock::now());
  }
  ladder_.end(wait, base::MonotonicClock::now());
  port.forget_interrupt();
  if (has_ended()) port.tell_end();
  return has_event(handle);
}

// Looks, as long as the ladder says; true when the wait is over.
template <typename IsOver>
bool HostCore::spin(IsOver&& is_over, queue::WaitLadder::Wait& wait, base::Instant deadline) {
  using Step = queue::WaitLadder::Step;
  for (;;) {
    if (is_over()) return true;
    progress();
    const auto now = base::MonotonicClock::now();
    const Step step = now >= deadline ? Step::sleep : ladder_.next(wait, now);
    if (step == Step::sleep) return is_over();
    if (step == Step::look) {
      base::relax();
      continue;
    }
    ::sched_yield();
    ladder_.yielded(wait, now, base::MonotonicClock::now());
  }
}

bool HostCore::arm_descriptor(engine::PortHandle handle) {
  ClientPort& port = find(handle);
  if (!port.disarm()) has_ended_.store(true, std::memory_order_release);
  return port.arm([&] { return port.is_interrupted() || has_event(handle); });
}

// The host engine makes progress by itself. A poller only learns here that it has ended.
bool HostCore::progress() {
  if (looks_in_vain_.fetch_add(1, std::memory_order_relaxed) % kLooksBetweenCalls == kLooksBetweenCalls - 1)
    look_for_end();
  return false;
}

bool HostCore::look_for_end() {
  pollfd closed{socket_.descriptor(), POLLRDHUP, 0};  // also told where nudges lie unread
  if (::poll(&closed, 1, 0) == 1) has_ended_.store(true, std::memory_order_release);
  return has_ended();
}

void HostCore::give_way() {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || !idle_polls_.is_turn()) return;
  const auto before = base::MonotonicClock::now();
  const auto step = idle_polls_.next(before);
  lock.unlock();
  if (step == queue::WaitLadder::Step::look) return;
  ::sched_yield();
  const auto after = base::MonotonicClock::now();
  if (lock.try_lock()) idle_polls_.yielded(before, after);
}

/// Waits for what the host engine writes into the reply cell. False if it has ended first.
template <typename HasCome>
bool HostCore::wait_for_host(HasCome&& has_come) {
  const auto is_over = [&] { return has_come() || has_ended(); };
  auto wait = ladder_.begin(base::MonotonicClock::now());
  while (!spin(is_over, wait, base::kNever)) {
    const std::scoped_lock sleeper(sleep_mutex_);
    queue::SleepFlag& flag = memory_->page().reply.caller;
    flag.sleeping.exchange(1, std::memory_order_acq_rel);
    if (!is_over()) sleep_until(socket_.descriptor(), base::MonotonicClock::now() + kNapForReply);
    flag.sleeping.exchange(0, std::memory_order_acq_rel);
    std::array<std::byte, 8> nudges;
    for (auto letter = socket_.receive(nudges); letter; letter = socket_.receive(nudges)) {
      if (letter->bytes != 0) continue;
      has_ended_.store(true, std::memory_order_release);
      break;
    }
    ladder_.slept(wait, base::MonotonicClock::now());
  }
  return has_come();
}

bool HostCore::wait_until_served(std::uint64_t number) {
  const std::atomic<std::uint64_t>& served = memory_->page().reply.served;
  return wait_for_host([&] { return static_cast<std::int64_t>(served.load(std::memory_order_acquire) - number) >= 0; });
}

/// The answer to the request of that number; the caller has held call_mutex_ since it was made.
Status HostCore::wait_for_reply(std::uint64_t number, std::uint64_t& key) {
  if (!wait_until_served(number)) return Status::restarted;
  const ReplyCell& reply = memory_->page().reply;
  key = reply.key.load(std::memory_order_relaxed);
  return status_from(reply.status.load(std::memory_order_relaxed));
}

}  // namespace fairlead::host
