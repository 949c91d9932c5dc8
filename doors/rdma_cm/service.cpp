// The service itself: its thread, files, timers and counts. Its ids are in service_ids.cpp, messages in
// service_messages.cpp.
#include "doors/rdma_cm/service.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <thread>

#include "base/log.hpp"
#include "base/process_mark.hpp"
#include "doors/ibverbs/identity.hpp"

namespace fairlead::rdma_cm {
namespace {

using Clock = Instant::clock;

constinit base::OfProcess<Service> service_of_process;

constexpr std::uint16_t kSourcePortFirst = 32768, kSourcePorts = 28232;  // the kernel's ephemeral range
constexpr std::uint32_t kPsnMask = 0xff'ffff;
constexpr Duration kLeaveAtMost = std::chrono::milliseconds(300);

template <typename Number>
bool draw(Number& number) {
  return ::getrandom(&number, sizeof number, 0) == sizeof number;
}

}  // namespace

Service& Service::of_process() {
  return *service_of_process;
}

Service::Service()
    : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), poll_(::epoll_create1(EPOLL_CLOEXEC)), carrier_(wake_.get()) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = wake_.get()}};
  ::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, wake_.get(), &event);
  if (auto watch = base::InterfaceWatch::open()) {
    interfaces_.emplace(std::move(*watch));
    event.data.fd = interfaces_->descriptor();
    ::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, interfaces_->descriptor(), &event);
  }
  std::uint16_t start = 0;
  draw(start);
  next_port_ = start % kSourcePorts;
}

void Service::wake() const {
  ::eventfd_write(wake_.get(), 1);
}

bool Service::start_thread() {
  if (has_thread_) return true;
  auto started = base::Thread::start([this] { run(); });
  if (!started) {
    base::log(LogLevel::error, LogTopic::verbs, {}, "connection manager: " + started.error().message);
    return false;
  }
  thread_ = std::move(*started);
  has_thread_ = true;
  static std::atomic<bool> leaves_at_exit{false};
  if (!leaves_at_exit.exchange(true)) std::atexit([] { Service::of_process().leave(); });
  return true;
}

// ---- files

int Service::open(int flags) {
  const std::lock_guard guard(mutex_);
  if (!start_thread()) {
    errno = EAGAIN;
    return -1;
  }
  int descriptor = -1;
  auto file = EventFile::open(flags, descriptor);
  if (!file) return -1;
  file->watch_close(poll_.get());
  files_.emplace(file->inode(), std::move(file));
  return descriptor;
}

std::shared_ptr<EventFile> Service::find_file(ino_t inode) {
  const std::lock_guard guard(mutex_);
  const auto found = files_.find(inode);
  return found != files_.end() ? found->second : nullptr;
}

void Service::end_closed_files() {
  const std::lock_guard guard(mutex_);
  for (auto each = files_.begin(); each != files_.end();) {
    if (!each->second->is_closed()) {
      ++each;
      continue;
    }
    const auto file = std::move(each->second);
    ::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, file->far_end(), nullptr);  // a forked child may still have it open
    each = files_.erase(each);
    std::vector<std::shared_ptr<Id>> ended;
    for (const auto& [handle, id] : ids_) {
      if (id->file == file) ended.push_back(id);
    }
    for (const auto& id : ended) destroy(id);
  }
}

void Service::wait_until_rejected(std::uint64_t name) {
  const auto is_rejecting = [&] {
    const std::lock_guard guard(mutex_);
    return outbox_.is_rejecting(name);
  };
  for (const auto deadline = Clock::now() + kLeaveAtMost; is_rejecting() && Clock::now() < deadline;)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
}

void Service::leave() {
  const auto deadline = Clock::now() + kLeaveAtMost;
  {
    const std::unique_lock guard(mutex_, std::try_to_lock);
    if (!guard) return;
    while (!ids_.empty()) destroy(std::shared_ptr<Id>(ids_.begin()->second));
  }
  for (;;) {
    {
      const std::lock_guard guard(mutex_);
      if (outbox_.is_empty()) return;
    }
    if (Clock::now() > deadline) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// ---- numbers that are drawn

std::shared_ptr<Id> Service::make_id(std::uint16_t port_space, std::uint8_t qp_type) {
  std::uint64_t name = 0;
  std::uint32_t psn = 0;
  if (ids_.size() >= kIdsMax || !draw(name) || !draw(psn) || name == 0 || by_name_.contains(name)) return nullptr;
  const std::uint32_t handle =
      free_handles_.empty() ? handles_++ : free_handles_.extract(free_handles_.begin()).value();
  constexpr std::uint8_t kDatagramPair = 4;  // IBV_QPT_UD
  auto id = std::make_shared<Id>(handle, Connection(name, psn & kPsnMask, qp_type == kDatagramPair));
  id->port_space = port_space;
  id->qp_type = qp_type;
  ids_.emplace(handle, id);
  by_name_.emplace(name, handle);
  return id;
}

std::uint16_t Service::next_source_port() {
  next_port_ = static_cast<std::uint16_t>((next_port_ + 1) % kSourcePorts);
  return static_cast<std::uint16_t>(kSourcePortFirst + next_port_);
}

// ---- time

void Service::arm(Id& id) {
  const Instant due = ids_.contains(id.handle) ? id.connection.due() : kNever;
  if (due == id.armed) return;
  if (id.armed != kNever) timers_.erase({id.armed, id.handle});
  if (due != kNever) {
    timers_.emplace(due, id.handle);
    wake();
  }
  id.armed = due;
}

void Service::expire(Instant now) {
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const auto found = ids_.find(timers_.extract(timers_.begin()).value().second);
    if (found == ids_.end()) continue;
    const std::shared_ptr<Id> id = found->second;
    id->armed = kNever;
    apply(id, id->connection.expire(now));
  }
  while (const auto tag = outbox_.take_due(now)) {
    if (const auto failed = outbox_.give_up(*tag)) {
      fail(*failed, now);
    } else {
      send(*tag);
    }
  }
}

void Service::ask_peers(Instant now) {
  if (now < ask_at_) return;
  std::map<std::string, std::vector<const Id*>> peers;
  for (const auto& [handle, id] : ids_) {
    if (id->connection.needs_peer()) peers[id->peer_address].push_back(id.get());
  }
  ask_at_ = peers.empty() ? kNever : now + kAliveEvery;
  for (const auto& [address, ids] : peers) {
    if (is_known_gone(address)) {
      lose_peer(address, Status::refused, now);
      continue;
    }
    const Id& id = *ids[asked_ % ids.size()];
    post(Sent{.handle = 0,
              .name = 0,
              .local = id.device,
              .host = id.peer,
              .to = address,
              .message = id.connection.ask(),
              .tries = 0});
  }
  ++asked_;
}

void Service::lose_devices(Instant now) {
  interfaces_->drain();
  const std::lock_guard guard(mutex_);
  for (const ibverbs::Identity& identity : ibverbs::identities()) {
    if (identity.device.interface_index == 0 || base::has_interface(identity.device.interface_index)) continue;
    std::vector<std::shared_ptr<Id>> lost;
    for (const auto& [handle, id] : ids_) {
      if (id->device == identity.device.gid) lost.push_back(id);
    }
    for (const auto& id : lost) apply(id, id->connection.lose_device(now));
  }
}

Instant Service::next_due() const {
  Instant due = std::min(ask_at_, outbox_.next_due());
  if (!timers_.empty()) due = std::min(due, timers_.begin()->first);
  return due;
}

void Service::work(Instant now) {
  const std::lock_guard guard(mutex_);
  Carrier::Collected collected = carrier_.collect();
  for (const Delivery& delivery : collected.deliveries) take(delivery, now);
  for (const Outcome& outcome : collected.outcomes) take_outcome(outcome, now);
  expire(now);
  ask_peers(now);
}

void Service::run() {
  for (;;) {
    Instant due;
    {
      const std::lock_guard guard(mutex_);
      due = next_due();
    }
    int timeout = -1;
    if (due != kNever) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(due - Clock::now()).count();
      timeout = static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
    }
    std::array<epoll_event, 16> events;
    const int count = ::epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()), timeout);
    bool is_any_closed = false, has_interface_changed = false;
    for (int i = 0; i < count; ++i) {
      const int ready = events[static_cast<std::size_t>(i)].data.fd;
      if (ready == wake_.get()) {
        std::uint64_t told = 0;
        [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &told, sizeof told);
      } else if (interfaces_ && ready == interfaces_->descriptor()) {
        has_interface_changed = true;
      } else {
        is_any_closed = true;
      }
    }
    if (has_interface_changed) lose_devices(Clock::now());
    if (is_any_closed) end_closed_files();
    work(Clock::now());
  }
}

ServiceCounters Service::counters() {
  const std::lock_guard guard(mutex_);
  return counters_;
}

std::string Service::describe() {
  const std::lock_guard guard(mutex_);
  return fmt::format(
      "rdma_cm: {} ids, {} files, requests {}, no listener {}, backlog full {}, unknown name {}, wrong sender {}, "
      "repeated {}, malformed {}, sent again {}, answers dropped {}, lost peers {}\n",
      ids_.size(), files_.size(), counters_.requests, counters_.no_listener, counters_.backlog_full,
      counters_.unknown_name, counters_.wrong_sender, counters_.repeated, carrier_.malformed(), outbox_.sent_again(),
      outbox_.answers_dropped(), counters_.lost_peers);
}

}  // namespace fairlead::rdma_cm
