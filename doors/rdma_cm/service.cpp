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
#include "doors/ibverbs/fail_pair.hpp"
#include "doors/rdma_cm/addressing.hpp"
#include "doors/rdma_cm/event_answer.hpp"

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

// Fails the queue pair and flushes its receives, so that a program that waits only for completions notices.
void fail_pair(const Id& id) {
  const ibverbs::Identity* const identity = find_identity(id.device);
  if (identity != nullptr) ibverbs::fail_pair(*identity, id.terms.qp_num, id.connection.peer_terms().qp_num);
}

bool is_gone(Status status) {
  return status == Status::refused || status == Status::restarted || status == Status::silent ||
         status == Status::unreachable;
}

}  // namespace

Service& Service::of_process() {
  return *service_of_process;
}

Service::Service()
    : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), poll_(::epoll_create1(EPOLL_CLOEXEC)), carrier_(wake_.get()) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = wake_.get()}};
  ::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, wake_.get(), &event);
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

// ---- ids

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

std::shared_ptr<Id> Service::find(std::uint32_t handle, const EventFile& file) {
  const auto found = ids_.find(handle);
  return found != ids_.end() && found->second->file.get() == &file ? found->second : nullptr;
}

void Service::remove_events(EventFile& file, const Id& id) {
  std::vector<std::shared_ptr<Id>> children;
  std::erase_if(file.events, [&](const Pending& pending) {
    if (pending.id.get() != &id && pending.child.get() != &id) return false;
    if (pending.child && pending.id.get() == &id) children.push_back(pending.child);
    if (pending.child.get() == &id) told_of_request(*pending.id, id);
    return true;
  });
  for (const auto& child : children) destroy(child);
}

void Service::destroy(const std::shared_ptr<Id>& id) {
  if (ids_.erase(id->handle) == 0) return;
  if (const auto message = id->connection.destroy()) post(*id, *message);
  arm(*id);
  by_name_.erase(id->connection.name());
  by_request_.erase({id->peer_address, id->connection.peer_name()});
  if (std::erase(listeners_, id) != 0) {
    for (const Ip& ip : id->listens) carrier_.unlisten(ip, id->source.port);
  }
  remove_events(*id->file, *id);
  free_handles_.insert(id->handle);
}

void Service::apply(const std::shared_ptr<Id>& id, const Step& step) {
  if (step.send) post(*id, *step.send);
  if (step.tell) tell(id, *step.tell);
  if (step.fails_pair) fail_pair(*id);
  arm(*id);
  if (id->connection.needs_peer() && ask_at_ == kNever) {
    ask_at_ = Clock::now() + kAliveEvery;
    wake();
  }
}

void Service::tell(const std::shared_ptr<Id>& id, const Told& told, const std::shared_ptr<Id>& child) {
  if (id->uid == 0 && !child) return;  // a request that the program has not accepted: its accept will fail
  Pending pending{.id = id, .child = child, .answer = answer_of(child ? *child : *id, told)};
  pending.answer.uid = id->uid;
  id->file->push(std::move(pending));
}

int Service::listen(const std::shared_ptr<Id>& id, std::uint32_t backlog) {
  if (id->connection.state() > State::bound) return EINVAL;
  id->reserved.clear();
  const std::vector<Ip> ips = devices_of(id->source, id->takes_v6_only);
  if (ips.empty()) return ENODEV;
  for (const auto& other : listeners_) {
    if (other->port_space != id->port_space || other->source.port != id->source.port) continue;
    if (std::ranges::any_of(ips, [&](const Ip& ip) { return std::ranges::count(other->listens, ip) != 0; }))
      return EADDRINUSE;
  }
  for (const Ip& ip : ips) {
    const int error = carrier_.listen(ip, id->source.port);
    if (error == 0) {
      id->listens.push_back(ip);
      continue;
    }
    for (const Ip& begun : id->listens) carrier_.unlisten(begun, id->source.port);
    id->listens.clear();
    return error;
  }
  id->backlog = Places(backlog == 0 || backlog > kBacklogMax ? kBacklogMax : backlog);
  listeners_.push_back(id);
  return id->connection.listen().error;
}

std::shared_ptr<Membership> Service::join(const std::shared_ptr<Id>& id, const Ip& group, std::uint64_t uid) {
  if (id->groups.size() >= Id::kGroupsMax) return nullptr;
  auto membership =
      std::make_shared<Membership>(Membership{.handle = membership_handles_++, .uid = uid, .group = group});
  id->groups.push_back(membership);
  id->file->push({.id = id, .child = nullptr, .answer = answer_of_join(*id, *membership), .membership = membership});
  return membership;
}

std::shared_ptr<Membership> Service::leave(std::uint32_t handle, EventFile& file) {
  for (const auto& [_, id] : ids_) {
    const auto found = std::ranges::find(id->groups, handle, [](const auto& each) { return each->handle; });
    if (id->file.get() != &file || found == id->groups.end()) continue;
    const auto left = *found;
    id->groups.erase(found);
    std::erase_if(file.events, [&](const Pending& pending) { return pending.membership == left; });
    return left;
  }
  return nullptr;
}

std::uint16_t Service::next_source_port() {
  next_port_ = static_cast<std::uint16_t>((next_port_ + 1) % kSourcePorts);
  return static_cast<std::uint16_t>(kSourcePortFirst + next_port_);
}

// ---- messages out

void Service::post(Id& id, const Message& message) {
  post(Sent{.handle = id.handle,
            .name = id.connection.name(),
            .local = id.device,
            .host = id.peer,
            .to = id.peer_address,
            .message = message,
            .tries = 0});
}

void Service::post(Sent sent) {
  if (const std::uint64_t tag = outbox_.add(std::move(sent)); tag != 0) send(tag);
}

void Service::send(std::uint64_t tag) {
  const Sent& sent = outbox_.find(tag);
  const Status status = carrier_.send(sent.local, sent.to, sent.message, tag);
  if (status == Status::ok) return;
  outbox_.refuse(tag, status, Clock::now());
  wake();
}

void Service::take_outcome(const Outcome& outcome, Instant now) {
  if (const auto failed = outbox_.finish(outcome.tag, outcome.status, now)) fail(*failed, now);
}

void Service::fail(const Failed& failed, Instant now) {
  const Sent& sent = failed.sent;
  if (sent.message.kind == Kind::alive) {
    if (is_gone(failed.why)) lose_peer(sent.to, failed.why, now);
    return;
  }
  const auto found = ids_.find(sent.handle);
  if (sent.name == 0 || found == ids_.end() || found->second->connection.name() != sent.name) return;
  const std::shared_ptr<Id> id = found->second;
  // If shared memory is the only transport, no engine reports that nobody listens.
  const bool is_request = sent.message.kind == Kind::req || sent.message.kind == Kind::sidr_req;
  const bool is_nobody = is_request && failed.why == Status::unreachable && is_nobody_at(id->peer, id->target.port);
  apply(id, id->connection.fail(sent.message.kind, is_nobody ? Status::refused : failed.why, now));
}

void Service::lose_peer(const std::string& address, Status status, Instant now) {
  std::vector<std::shared_ptr<Id>> lost;
  for (const auto& [handle, id] : ids_) {
    if (id->peer_address == address && id->connection.needs_peer()) lost.push_back(id);
  }
  if (!lost.empty()) ++counters_.lost_peers;
  for (const auto& id : lost) apply(id, id->connection.lose(status, now));
}

// ---- messages in

void Service::take(const Delivery& delivery, Instant now) {
  const Message& message = delivery.message;
  if (message.kind == Kind::req || message.kind == Kind::sidr_req) return take_request(delivery);
  const std::shared_ptr<Id> id = addressee(delivery);
  if (message.kind == Kind::alive) {
    if (message.to != 0 && (!id || id->connection.is_over()))
      answer_without_id(delivery, Kind::dreq, std::to_underlying(Reason::invalid_comm_id));
    return;
  }
  if (id) {
    // A peer that has forgotten one connection has probably forgotten others.
    if (message.kind == Kind::dreq && message.reason == std::to_underlying(Reason::invalid_comm_id)) ask_at_ = now;
    return apply(id, id->connection.take(message, now));
  }
  ++counters_.unknown_name;
  if (message.kind == Kind::dreq) answer_without_id(delivery, Kind::drep, 0);
  if (message.kind == Kind::rep) answer_without_id(delivery, Kind::rej, std::to_underlying(Reason::invalid_comm_id));
}

// Returns the id that a message names, if the sender is that id's peer, at the address that we asked.
std::shared_ptr<Id> Service::addressee(const Delivery& delivery) {
  const Message& message = delivery.message;
  std::uint32_t handle = 0;
  if (message.to != 0) {
    const auto found = by_name_.find(message.to);
    if (found == by_name_.end()) return nullptr;
    handle = found->second;
  } else {
    const auto found = by_request_.find({delivery.from, message.from});
    if (found == by_request_.end()) return nullptr;
    handle = found->second;
  }
  const auto found = ids_.find(handle);
  if (found == ids_.end()) return nullptr;
  const std::shared_ptr<Id>& id = found->second;
  const bool is_answer = id->connection.state() == State::requesting;
  if (ip_of_address(delivery.from) != id->peer ||
      (!is_answer && (id->connection.peer_name() != message.from || id->peer_address != delivery.from))) {
    ++counters_.wrong_sender;
    return nullptr;
  }
  // A listener's process answers from its home, which is the peer's address from then on.
  if (is_answer && message.kind == Kind::rep) id->peer_address = delivery.from;
  return id;
}

std::shared_ptr<Id> Service::listener_of(const Delivery& delivery) {
  for (const auto& id : listeners_) {
    if (id->port_space == delivery.message.port_space && id->source.port == delivery.port &&
        std::ranges::count(id->listens, delivery.local) != 0 &&
        id->connection.is_datagram() == (delivery.message.kind == Kind::sidr_req)) {
      return id;
    }
  }
  return nullptr;
}

void Service::answer_without_id(const Delivery& delivery, Kind kind, std::uint8_t reason) {
  Message answer;
  answer.kind = kind;
  answer.reason = reason;
  answer.to = delivery.message.from;
  answer.from = delivery.message.to != 0 ? delivery.message.to : 1;
  post(Sent{.handle = 0,
            .name = 0,
            .local = delivery.local,
            .host = ip_of_address(delivery.from).value_or(Ip{}),
            .to = delivery.from,
            .message = answer,
            .tries = 0});
}

void Service::take_request(const Delivery& delivery) {
  const Message& message = delivery.message;
  ++counters_.requests;
  const bool is_datagram = message.kind == Kind::sidr_req;
  const std::shared_ptr<Id> listener = delivery.port != 0 ? listener_of(delivery) : nullptr;
  if (!listener) {
    ++counters_.no_listener;
    return answer_without_id(
        delivery, is_datagram ? Kind::sidr_rep : Kind::rej,
        is_datagram ? std::to_underlying(SidrStatus::unsupported) : std::to_underlying(Reason::invalid_service_id));
  }
  const auto peer = ip_of_address(delivery.from);
  if (!peer || by_request_.contains({delivery.from, message.from})) {
    ++counters_.repeated;
    return;
  }
  const bool has_place = listener->backlog.take(*peer);
  const std::shared_ptr<Id> child = has_place ? make_id(listener->port_space, listener->qp_type) : nullptr;
  if (!child) {
    if (has_place) listener->backlog.release(*peer);
    ++counters_.backlog_full;
    return answer_without_id(delivery, Kind::busy, 0);
  }
  child->connection = Connection::answering(message, child->connection.name(), child->connection.psn());
  child->file = listener->file;
  child->has_device = true;
  child->device = delivery.local;
  child->peer = *peer;
  child->peer_address = delivery.from;
  const Family family = message.target.family == Family::none ? listener->source.family : message.target.family;
  child->source = {.family = family, .ip = message.target.ip, .port = delivery.port};
  // A program of this host that asked for a loopback address has that address as its own.
  const bool is_loop = *peer == delivery.local && is_loopback(message.target.ip);
  child->target = {.family = family, .ip = is_loop ? message.target.ip : *peer, .port = message.source_port};
  if (family == Family::v4 && !is_v4(*peer)) child->source.family = child->target.family = Family::v6;
  child->tos = listener->tos;
  child->ack_timeout = listener->ack_timeout;
  by_request_.emplace(std::pair(delivery.from, message.from), child->handle);
  tell(listener, Connection::request_told(message), child);
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
    bool is_any_closed = false;
    for (int i = 0; i < count; ++i) {
      if (events[static_cast<std::size_t>(i)].data.fd != wake_.get()) {
        is_any_closed = true;
        continue;
      }
      std::uint64_t told = 0;
      [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &told, sizeof told);
    }
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
