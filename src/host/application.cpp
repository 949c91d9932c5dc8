#include "host/application.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/say.hpp"

namespace fairlead::host {
namespace {

/// Returns whether the request moves data to or from a peer. Only such requests may wait here until the engine accepts
/// them; others are accepted or refused at once.
bool is_outgoing(const Request& request) {
  using Kind = Request::Kind;
  const auto kind = static_cast<Kind>(request.kind);
  return kind == Kind::send || kind == Kind::put || kind == Kind::get || kind == Kind::active;
}

}  // namespace

Result<std::unique_ptr<Application>> Application::make(shm::Socket socket, SharedMemory memory,
                                                       std::shared_ptr<ServedEngine> engine, std::uint64_t secret,
                                                       const Quota& quota) {
  std::unique_ptr<Application> made(
      new Application(std::move(socket), std::move(memory), std::move(engine), secret, quota));
  const std::span requests(made->memory_.head() + Layout::requests(), Layout::requests_bytes());
  auto consumer = queue::Consumer::create(requests, {.element_bytes = sizeof(Request), .elements = kRequestsMax + 1});
  if (!consumer) return std::unexpected(std::move(consumer.error()));
  consumer->look_at_once();
  made->requests_ = std::move(*consumer);
  made->show_losses();
  return made;
}

std::string Application::name() const {
  return fmt::format("process {} of user {}", socket_.credentials().process, socket_.credentials().user);
}

AttachedFact Application::fact() const {
  const auto age = base::MonotonicClock::now() - attached_at_;
  return {.user = socket_.credentials().user,
          .process = socket_.credentials().process,
          .engine = core_->address(),
          .ports = ports_open_,
          .operations = pending_,
          .seconds = static_cast<std::uint64_t>(age / std::chrono::seconds(1)),
          .pairs = pairs_ ? pairs_->count() : 0,
          .ports_max = quota_.ports,
          .pairs_max = quota_.pairs,
          .operations_max = quota_.operations,
          .events = event_room_.taken(),
          .events_max = quota_.events,
          .registered_bytes = pairs_ ? pairs_->registered_bytes() : 0,
          .registered_max = quota_.registered_bytes,
          .bytes_per_second = quota_.bytes_per_second};
}

void Application::blame(std::string_view why) {
  if (fault_.empty()) fault_ = why;
}

// Ports --------------------------------------------------------------------------------------------------------------

Result<> Application::admit_port(const Call& call) const {
  if (ports_open_ >= quota_.ports) {
    return std::unexpected(Error{
        Status::no_memory, 0,
        fmt::format("{} has {} ports, as many as its rule at the host engine lets it have", name(), ports_open_)});
  }
  if (call.count > kPortNumbersMax) {
    return std::unexpected(Error{Status::invalid, 0,
                                 fmt::format("{} asks for any of {} port numbers: a call may name at most {}", name(),
                                             call.count, kPortNumbersMax)});
  }
  const std::uint64_t last = std::uint64_t{call.number} + std::max(call.count, 1U) - 1;
  if (call.number >= quota_.number_first && last <= quota_.number_last) return {};
  constexpr int kPortalShift = 12;
  return std::unexpected(Error{Status::not_permitted, EPERM,
                               fmt::format("{} may not have portals {}-{}: its rule at the host engine says "
                                           "portals={}-{}",
                                           name(), call.number >> kPortalShift, last >> kPortalShift,
                                           quota_.number_first >> kPortalShift, quota_.number_last >> kPortalShift)});
}

Result<Answer> Application::open_port(const Call& call) {
  if (call.index >= kPortsMax || ports_[call.index] || is_leaving_) {
    return std::unexpected(Error{Status::in_use, 0, fmt::format("port index {} is not free", call.index)});
  }
  if (const auto admitted = admit_port(call); !admitted) return std::unexpected(admitted.error());
  std::uint32_t number = call.number;
  const auto handle =
      call.count == 0 ? core_->open_port(number) : core_->open_port_dynamic(call.number, call.count, number);
  if (!handle) return std::unexpected(handle.error());
  const std::span events(memory_.head() + Layout::events(call.index), Layout::events_bytes());
  Result<std::unique_ptr<ApplicationPort>> port;
  if (!base::say([&] { port = ApplicationPort::open(*core_, *handle, events, page().ports[call.index], event_room_); }))
    port = std::unexpected(Error{Status::no_memory, ENOMEM, "no memory"});
  if (!port) {
    core_->close_port(*handle);
    return std::unexpected(std::move(port.error()));
  }
  ports_[call.index] = std::move(*port);
  ports_end_ = std::max(ports_end_, call.index + 1);
  ++ports_open_;
  return Answer{.number = number};
}

void Application::close_port(std::uint32_t index, bool wants_answer) {
  ApplicationPort* const port = this->port(index);
  if (port == nullptr) return;
  port->wants_answer |= wants_answer;
  if (!std::exchange(port->is_closing, true)) cancel_all(index, *port);
}

void Application::cancel_all(std::uint32_t index, ApplicationPort& port) {
  if (port.active) core_->own_active().cancel_all(port.handle());  // its operations have no handles
  for (Operation& operation : operations_) {
    if (operation.port != index || operation.phase == Operation::Phase::unused) continue;
    if (operation.phase == Operation::Phase::posted) {
      core_->cancel(port.handle(), operation.handle);
    } else {
      end(port, operation);
    }
  }
  port.deferred.clear();
  for (; !port.keys.is_empty(); --keys_given_) {
    port.take_back_key();
    engine_->shares.give_back(posted_--);
  }
}

void Application::leave() {
  if (std::exchange(is_leaving_, true)) return;
  if (pairs_) pairs_->leave();
  for (std::uint32_t index = 0; index < ports_end_; ++index) close_port(index, false);
}

// Queue pairs --------------------------------------------------------------------------------------------------------

Result<> Application::open_pairs(PairTools& tools, PairMemory memory) {
  if (pairs_ || is_leaving_) return std::unexpected(Error{Status::in_use, 0, "this process has queue pairs already"});
  if (quota_.pairs == 0) {
    return std::unexpected(
        Error{Status::not_permitted, EPERM,
              fmt::format("{} may have no queue pairs: its rule permits no queue pairs (pairs=0, or rate= without "
                          "pairs=); add pairs=N to the rule, or set FAIRLEAD_CORE=embedded",
                          name())});
  }
  auto pairs = ApplicationPairs::open(core_->own_pairs(), tools, std::move(memory), quota_);
  if (!pairs) return std::unexpected(std::move(pairs.error()));
  pairs_ = std::move(*pairs);
  return {};
}

/// Returns `any`: whether the turn had work.
bool Application::end_turn_of_pairs(bool any) {
  if (!pairs_->fault().empty()) blame(pairs_->fault());
  if (pairs_->has_answered()) wake_caller();
  return any;
}

void Application::wake_caller() {
  if (page().reply.caller.sleeping.exchange(0, std::memory_order_acq_rel) != 0) socket_.nudge();
}

// Requests -----------------------------------------------------------------------------------------------------------

bool Application::take_requests(base::Instant now, bool is_alone) {
  if (is_leaving_ || is_held_) return false;
  allowance_.begin_turn(now, is_alone);
  turn_ = is_alone ? kTurn : kSharedTurn;
  const bool any_of_pairs = pairs_ && end_turn_of_pairs(pairs_->take_requests(is_alone));
  std::uint32_t count = 0;
  while (count < turn_ && allowance_.has_turn()) {
    const std::byte* const element = requests_->get();
    if (element == nullptr) break;
    Request request;
    std::memcpy(&request, element, sizeof request);
    ++count;
    take(request);
  }
  if (count > 0) {
    requests_->hand_back();
    page().reply.served.store(served_ += count, std::memory_order_release);
    wake_caller();
  }
  if (requests_->status() == Status::invalid) blame("it has damaged the ring of its requests");
  return count > 0 || any_of_pairs;
}

void Application::take(const Request& request) {
  ApplicationPort* const port = this->port(request.port);
  if (port == nullptr || port->is_closing) return;  // closed through its socket after the request was written
  if (request.kind == static_cast<std::uint8_t>(Request::Kind::cancel)) return cancel(*port, request);
  if (request.kind == static_cast<std::uint8_t>(Request::Kind::give_keys)) {
    give_keys(*port);
    return reply(port->keys.is_empty() ? Status::no_memory : Status::ok, 0);
  }
  if (request.kind > static_cast<std::uint8_t>(Request::Kind::leave)) return blame("it sent an unknown request");
  if (request.kind > static_cast<std::uint8_t>(Request::Kind::active)) return take_active(*port, request);
  start(*port, request);
}

void Application::start(ApplicationPort& port, const Request& request) {
  const auto index = static_cast<std::uint32_t>(request.operation);
  if (index >= kOperationsMax) return blame("it names operations beyond the bound");
  while (operations_.size() <= index) operations_.emplace_back();
  Operation& operation = operations_[index];
  if (operation.phase != Operation::Phase::unused) return blame("it names an operation that is pending");
  if (pending_ >= quota_.operations) return blame("it has more operations pending than its quota");
  const bool is_active = request.kind == static_cast<std::uint8_t>(Request::Kind::active);
  if (is_active && !port.active) return blame("it sent an active message from a port that takes none");
  if (!is_inside(request.offset, request.length) || (request.length == 0 && !is_active))
    return blame("it named memory outside its shared memory");
  const bool is_exposure = request.kind == static_cast<std::uint8_t>(Request::Kind::expose);
  if (is_exposure && port.keys.is_empty()) return blame("it exposed memory without a key");
  const bool is_receive = request.kind == static_cast<std::uint8_t>(Request::Kind::receive);
  const std::uint32_t events = is_receive ? request.messages_max : 1;
  if (events == 0 || events > kMessagesInReceiveMax)
    return blame("it asked for more messages in a buffer than the limit");
  operation = {.name = request.operation,
               .serial = ++started_,
               .handle = {},
               .memory = {memory_.head() + request.offset, request.length},
               .events = events,
               .port = request.port,
               .phase = Operation::Phase::deferred,
               .is_outgoing = is_outgoing(request)};
  ++port.pending;
  ++pending_;
  const bool may_wait = operation.is_outgoing;
  if (may_wait) ++sending_;
  if (may_wait && !port.deferred.empty()) {
    port.deferred.push_back({request, operation.serial});
    return;
  }
  const Status status = pass_on(port, request, operation);
  if (status == Status::again && may_wait) {
    port.deferred.push_back({request, operation.serial});
  } else if (status != Status::ok) {
    refuse(port, request, status);
  }
  if (is_exposure && port.keys.count() <= kKeysAhead / 2) give_keys(port);
}

/// Fills the port's shelf. Each key is an operation of the engine: all together take a quarter of what the application
/// has for certain. Beyond that, a port gets one at a time.
void Application::give_keys(ApplicationPort& port) {
  const std::uint64_t most = std::min<std::uint64_t>(engine_->shares.guaranteed(), quota_.operations) / 4;
  while (port.keys.count() < kKeysAhead && (keys_given_ < most || port.keys.is_empty()) &&
         engine_->shares.take(posted_)) {
    ++posted_;
    if (port.give_key() != Status::ok) {
      engine_->shares.give_back(posted_--);
      return;
    }
    ++keys_given_;
  }
}

/// Submits a request to the engine. Returns `again` if the caller should retry later; other errors are final.
Status Application::pass_on(ApplicationPort& port, const Request& request, Operation& operation) {
  if (operation.is_outgoing && !allowance_.may_send(request.length)) return Status::again;
  if (request.kind == static_cast<std::uint8_t>(Request::Kind::expose)) {
    --keys_given_;  // its key has been an operation of the engine, and becomes this one
  } else {
    if (!engine_->shares.take(posted_)) return operation.is_outgoing ? Status::again : Status::no_memory;
    ++posted_;
  }
  ApplicationPort::Submitted submitted;
  const Status status = port.submit(request, std::span(&operation.memory, 1), operation.events, submitted);
  if (status != Status::ok) {
    engine_->shares.give_back(posted_--);
    if (port.active) blame(port.active->fault());
    return status;
  }
  operation.phase = Operation::Phase::posted;
  operation.handle = submitted.operation;
  if (operation.is_outgoing) allowance_.sent(request.length);
  if (submitted.is_done) {
    // It needs the event only to use the memory again, so a sleeper is not woken.
    const Event done{.operation = operation.name,
                     .length = request.length,
                     .time_ns = base::MonotonicClock::now().time_since_epoch().count(),
                     .flags = Event::kIsFinal};
    give(port, done, false);
    end(port, operation);
  }
  return status;
}

/// Submits deferred requests in order, until one must wait, or as many as a turn has. Returns true if any was.
bool Application::retry(ApplicationPort& port) {
  std::uint32_t left = turn_;
  for (; !is_held_ && !port.deferred.empty() && left > 0; --left) {
    const DeferredRequest waiting = port.deferred.front();
    const Request& request = waiting.request;
    Operation& operation = operations_[static_cast<std::uint32_t>(request.operation)];
    const Status status = is_deferred(waiting) ? pass_on(port, request, operation) : Status::ok;
    if (status == Status::again) break;
    port.deferred.pop_front();
    if (status != Status::ok) refuse(port, request, status);
  }
  return left < turn_;
}

/// Replies `ok` if the engine's final completion will follow, `stale` if the operation has ended. In the latter case
/// its final event is in the queue before the reply.
void Application::cancel(ApplicationPort& port, const Request& request) {
  reply(Status::stale, 0);
  const auto index = static_cast<std::uint32_t>(request.operation);
  if (index >= operations_.size()) return;
  Operation& operation = operations_[index];
  if (operation.name != request.operation || operation.port != request.port) return;
  if (operation.phase == Operation::Phase::posted) {
    if (core_->cancel(port.handle(), operation.handle)) return reply(Status::ok, 0);
    // Until its final event is delivered, because the application reads it after the reply. The engine has that event
    // already, behind at most as many as are reserved.
    for (std::size_t turns = port.reserved() / turn_ + 1; turns > 0 && operation.phase == Operation::Phase::posted;
         --turns)
      give_events(request.port, port);
  } else if (operation.phase == Operation::Phase::deferred) {
    give(port, {.operation = operation.name,
                .time_ns = base::MonotonicClock::now().time_since_epoch().count(),
                .status = static_cast<std::uint8_t>(Status::canceled),
                .flags = Event::kIsFinal});
    end(port, operation);
    // The request stays in `deferred`, and is skipped later. Erases such requests when there are many.
    if (port.deferred.size() > 2 * std::size_t{port.pending} + kTurn)
      std::erase_if(port.deferred, [&](const DeferredRequest& waiting) { return !is_deferred(waiting); });
  }
}

/// Returns whether the operation of a deferred request still waits. It may have been canceled.
bool Application::is_deferred(const DeferredRequest& waiting) const {
  const Operation& operation = operations_[static_cast<std::uint32_t>(waiting.request.operation)];
  return operation.phase == Operation::Phase::deferred && operation.serial == waiting.serial;
}

/// Ends an operation that the engine refused.
void Application::refuse(ApplicationPort& port, const Request& request, Status status) {
  give(port, {.operation = request.operation,
              .time_ns = base::MonotonicClock::now().time_since_epoch().count(),
              .status = static_cast<std::uint8_t>(status),
              .flags = Event::kIsFinal});
  end(port, operations_[static_cast<std::uint32_t>(request.operation)]);
}

/// Sets the result of a request that has one. take_requests() publishes it by counting the request as served.
void Application::reply(Status status, std::uint64_t key) {
  page().reply.status.store(static_cast<std::uint64_t>(status), std::memory_order_relaxed);
  page().reply.key.store(key, std::memory_order_relaxed);
}

// Events -------------------------------------------------------------------------------------------------------------

bool Application::give_events() {
  const bool any = pairs_ && end_turn_of_pairs(pairs_->give_events());
  return give_events_of_next_ports() || any;
}

/// A look at a port takes the lock of its engine, even if nothing happened.
bool Application::give_events_of_next_ports() {
  if (turn_ == kTurn || ports_end_ <= kPortsInSharedTurn) return give_events_of_ports();
  bool any = false;
  for (std::uint32_t left = kPortsInSharedTurn; left > 0; --left) {
    next_port_ = next_port_ + 1 < ports_end_ ? next_port_ + 1 : 0;
    if (ports_[next_port_]) any |= give_events(next_port_, *ports_[next_port_]);
  }
  return any;
}

bool Application::give_events_of_ports() {
  bool any = false;
  for (std::uint32_t index = 0; index < ports_end_; ++index)
    if (ports_[index]) any |= give_events(index, *ports_[index]);
  return any;
}

bool Application::give_events(std::uint32_t index, ApplicationPort& port) {
  if (port.is_closed) return false;
  std::array<engine::Completion, kTurn> batch;
  const std::size_t count = core_->next_events(port.handle(), std::span(batch).first(turn_));
  show_losses();      // before the events of the failures that they caused
  port.show_drops();  // first: the count is then current when the application takes these events
  for (const engine::Completion& completion : std::span(batch).first(count)) {
    Operation& operation = operations_[static_cast<std::uint32_t>(completion.cookie)];
    if (!port.is_closing) {
      give(port, {.operation = operation.name,
                  .length = completion.length,
                  .offset = completion.offset,
                  .time_ns = completion.time_ns,
                  .source = to_plain(completion.source.engine),
                  .source_port = completion.source.port,
                  .status = static_cast<std::uint8_t>(completion.status),
                  .flags = completion.is_final ? Event::kIsFinal : std::uint8_t{0}});
    }
    if (!operation.is_outgoing) allowance_.received(completion.length);
    if (completion.is_final) {
      port.release(operation.events);
      end(port, operation);
    }
  }
  bool any = retry(port) || count > 0;
  if (port.active && !port.is_closing && !is_held_) any |= give_arrivals(port, &ServedActive::give);
  port.tell();
  if (!port.is_closing || port.pending > 0) return any;
  if (port.active) port.active->close(!port.wants_answer);  // a process that lives closes a port by a call
  port.active.reset();
  core_->close_port(port.handle());
  --ports_open_;
  if (is_leaving_) {
    // The application treats the end of a connection as the end of the host engine, and then reuses all its memory. So
    // the connections stay open until nothing refers to the memory.
    port.is_closed = true;
  } else {
    if (port.wants_answer) send_answer(port.socket(), {});
    ports_[index].reset();
  }
  return true;
}

void Application::give(ApplicationPort& port, const Event& event, bool is_news) {
  if (!port.produce(event, is_news)) blame("it has not reserved room for its events, or has damaged their queue");
}

void Application::end(ApplicationPort& port, Operation& operation) {
  if (operation.phase == Operation::Phase::posted) {
    engine_->shares.give_back(posted_--);
    if (operation.is_outgoing) allowance_.ended(operation.memory.iov_len);
  }
  operation.phase = Operation::Phase::unused;
  if (operation.is_outgoing) --sending_;
  --port.pending;
  --pending_;
}

// Sleep --------------------------------------------------------------------------------------------------------------

// Follows the protocol of queue::Waiter: announces the sleep, then polls once more.
bool Application::park() {
  page().host.sleeping.exchange(1, std::memory_order_acq_rel);
  bool is_idle = (is_leaving_ || requests_->count() == 0) && (!pairs_ || pairs_->park());
  for (std::uint32_t index = 0; index < ports_end_ && is_idle; ++index) {
    ApplicationPort* const port = ports_[index].get();
    if (port == nullptr) continue;
    const bool has_to_wait = allowance_.next_send_at() != base::kNever;  // its rate delays it, until wake_at()
    is_idle = (port->deferred.empty() || has_to_wait) && !port->is_closing &&
              (!port->active || !give_arrivals(*port, &ServedActive::park)) && core_->arm_descriptor(port->handle());
    port->show_drops();  // since give_events()
  }
  show_losses();  // after all ports are armed: a later loss wakes us
  for (std::uint32_t index = 0; index < ports_end_; ++index)
    if (ports_[index] && !ports_[index]->is_closed) ports_[index]->tell();
  is_idle &= fault_.empty();
  if (!is_idle) unpark();
  return is_idle;
}

void Application::unpark() {
  page().host.sleeping.exchange(0, std::memory_order_acq_rel);
  for (std::uint32_t index = 0; index < ports_end_; ++index) {
    const ApplicationPort* const port = ports_[index].get();
    if (port == nullptr) continue;
    if (!port->is_closed) core_->disarm_descriptor(port->handle());
    if (port->active) port->active->unpark();
  }
}

base::Instant Application::wake_at() const {
  const auto is_held_up = [](const auto& port) { return port && !port->deferred.empty(); };
  return std::ranges::any_of(ports_, is_held_up) ? allowance_.next_send_at() : base::kNever;
}

}  // namespace fairlead::host
