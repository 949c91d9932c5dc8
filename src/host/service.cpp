// The loop: serving, parking, sleeping.

#include "host/service.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/affinity.hpp"
#include "base/event_descriptor.hpp"
#include "base/log.hpp"
#include "base/say.hpp"
#include "host/lost_peer.hpp"
#include "host/peer_facts.hpp"
#include "host/watch_error.hpp"

namespace fairlead::host {
namespace {

// An idle thread polls longer than a waiter in an application: several threads may stand between it and the next
// request, and each of them may wait for a processor. In times `spin`.
constexpr int kSpinsOfIdle = 6;
// After so many passes without work the sockets are polled, because a parked application may have sent a nudge.
constexpr std::uint32_t kPassesBetweenLooks = 8;
// The longest time between polls of the sockets while an application is awake, and while others are parked: these wait
// for the poll when they send or get a message. A poll takes half a microsecond.
constexpr base::Duration kBetweenLooks = std::chrono::milliseconds(1);
constexpr base::Duration kBetweenLooksForParked = std::chrono::microseconds(20);
// The time between looks at applications that are leaving, while no other is awake.
constexpr base::Duration kBetweenLooksAtLeaving = std::chrono::milliseconds(1);
// The longest time that one poll of the sockets takes before applications are served again.
constexpr base::Duration kLookMost = std::chrono::microseconds(250);

}  // namespace

Result<std::unique_ptr<Service>> Service::open(ServiceOptions options) {
  base::FileDescriptor inherited = std::move(options.inherited);
  auto service = make(options);
  if (!service) return service;
  (*service)->is_inherited_ = inherited.is_open();
  auto listener =
      inherited.is_open() ? shm::Listener::inherit(std::move(inherited), (*service)->users_) : (*service)->listen();
  if (!listener) return std::unexpected(std::move(listener.error()));
  if (auto taken = (*service)->listen_at(std::move(*listener)); !taken) return std::unexpected(taken.error());
  if (auto started = (*service)->workers_.start(); !started) return std::unexpected(std::move(started.error()));
  return service;
}

Result<> Service::check(const ServiceOptions& options) {
  if (const auto name = socket_name(options.file); !name) return std::unexpected(name.error());
  const long configured = ::sysconf(_SC_NPROCESSORS_CONF);
  for (const unsigned processor : options.processors) {
    if (processor < static_cast<unsigned long>(configured)) continue;
    return std::unexpected(
        Error{Status::invalid, 0,
              fmt::format("processor {}: this host has {}, numbered from 0 (--processors)", processor, configured)});
  }
  return {};
}

Result<std::unique_ptr<Service>> Service::make(const ServiceOptions& options) {
  if (auto good = check(options); !good) return std::unexpected(std::move(good.error()));
  const auto routes = std::make_shared<Routes>(std::clamp(options.threads, 1U, kThreadsMax));
  auto first = make(options, routes, 0);
  for (std::uint32_t thread = 1; first && thread < routes->threads(); ++thread) {
    auto other = make(options, routes, thread);
    if (!other) return other;
    (*first)->workers_.add(std::move(*other));
  }
  return first;
}

Result<std::unique_ptr<Service>> Service::make(const ServiceOptions& options, std::shared_ptr<Routes> routes,
                                               std::uint32_t thread) {
  base::FileDescriptor poll(::epoll_create1(EPOLL_CLOEXEC));
  if (!poll.is_open()) return std::unexpected(Error{Status::system, errno, "epoll_create1 failed: raise ulimit -n"});
  auto end = base::open_event_descriptor("the host engine", EFD_NONBLOCK);
  if (!end) return std::unexpected(std::move(end.error()));
  ServiceOptions own{.file = options.file,
                     .rules = options.rules,
                     .engines = options.engines,
                     .applications_max = options.applications_max,
                     .applications_per_user_max = options.applications_per_user_max,
                     .engines_max = (options.engines_max + routes->threads() - 1) / routes->threads(),
                     .threads = routes->threads(),
                     .processors = options.processors,
                     .engine = options.engine};
  std::unique_ptr<Service> service(
      new Service(std::move(own), std::move(poll), std::move(*end), std::move(routes), thread));
  if (auto opened = service->mailbox_.open(); !opened) return std::unexpected(std::move(opened.error()));
  if (!service->watch(service->end_.get(), kEnd, EPOLLIN) ||
      !service->watch(service->mailbox_.descriptor(), kMail, EPOLLIN))
    return std::unexpected(cannot_watch(errno));
  return service;
}

Result<> Service::listen_at(shm::Listener listener) {
  listener_ = std::move(listener);
  if (watch(listener_.descriptor(), kListener, EPOLLIN)) return {};
  return std::unexpected(cannot_watch(errno));
}

Service::Service(ServiceOptions options, base::FileDescriptor poll, base::FileDescriptor end,
                 std::shared_ptr<Routes> routes, std::uint32_t thread)
    : options_(std::move(options)),
      routes_(std::move(routes)),
      thread_(thread),
      poll_(std::move(poll)),
      end_(std::move(end)),
      engines_(routes_, thread, options_.engine,
               {.engines_max = options_.engines_max, .applications_max = options_.applications_max}),
      next_number_(Routes::first_number(thread) + kFirstApplication),
      linger_(kSpinsOfIdle * std::chrono::microseconds(options_.engine.get(engine::Option::spin))),
      wait_(options_.engine.wait(), linger_) {}

Service::~Service() = default;

Result<shm::Listener> Service::listen() {
  const auto name = socket_name(options_.file);
  if (!name) return std::unexpected(name.error());
  const std::string directory = std::filesystem::path(options_.file).parent_path();
  auto listener = shm::Listener::open(*name, {.directory = directory, .is_for_all = !options_.rules.empty()}, users_);
  if (!listener && listener.error().status == Status::in_use)
    listener.error().message += ": another fairleadd listens there; stop it, or choose another --socket";
  if (!listener && listener.error().system_errno == EEXIST)
    listener.error().message += ": something that is no socket is there; remove it, or choose another --socket";
  return listener;
}

/// `is_known` means that the descriptor was watched as a visitor's.
bool Service::watch(int descriptor, std::uint64_t source, std::uint32_t events, bool is_known) {
  epoll_event event{.events = events, .data = {.u64 = source}};
  return ::epoll_ctl(poll_.get(), is_known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, descriptor, &event) == 0;
}

void Service::stop() noexcept {
  ::eventfd_write(end_.get(), 1);
  workers_.stop();
}

bool Service::is_stopped() const noexcept {
  pollfd end{end_.get(), POLLIN, 0};
  return ::poll(&end, 1, 0) != 0;
}

/// Binds the calling thread to the processor of this service.
void Service::bind() {
  if (options_.processors.empty()) return;
  const unsigned processor = options_.processors[thread_ % options_.processors.size()];
  if (base::pin_to_cpu(static_cast<int>(processor))) return;
  base::log(LogLevel::warning, LogTopic::engine, {},
            fmt::format("thread {} runs on any processor: this process may not use processor {} (--processors)",
                        thread_, processor));
}

/// Binds the thread to its processor, and starts the workers.
void Service::settle() {
  if (!std::exchange(is_settled_, true)) bind();
  if (const auto started = workers_.start(); !started)
    base::log(LogLevel::warning, LogTopic::engine, {},
              fmt::format("some threads do not run: {}", started.error().message));
}

bool Service::run(base::Instant deadline) {
  settle();
  while (!is_ending_) {
    if (deadline != base::kNever && base::MonotonicClock::now() >= deadline) return false;
    pass(deadline);
    if (is_replacement_wanted_) return false;
    if (std::exchange(is_interrupted_, false)) {
      is_settled_ = false;  // it goes on in another thread
      return false;
    }
  }
  end();
  return true;
}

void Service::end() {
  for (auto& [number, attached] : applications_) attached.application->leave();
  // Waits until unresponsive peers are given up. Only then do applications see their connections end.
  while (!applications_.empty()) {
    for (auto& [number, attached] : applications_) wake(number, attached);
    serve_awake(base::MonotonicClock::now());
    drop_gone();
    if (are_all_leaving_) std::this_thread::sleep_for(kBetweenLooksAtLeaving);
  }
  workers_.join();
}

void Service::pass(base::Instant deadline) {
  const auto now = base::MonotonicClock::now();
  const bool any = serve_awake(now);
  if (has_gone_ones_) drop_gone();
  passes_in_vain_ = any ? 0 : passes_in_vain_ + 1;
  if (any) wait_.end(now);
  if (awake_.empty() || are_all_leaving_ || now >= look_at_ || passes_in_vain_ == kPassesBetweenLooks) {
    passes_in_vain_ = 0;
    look_at_sockets(deadline);
  } else if (!any && wait_.has_to_sleep(now)) {
    last_awake_.clear();
    std::erase_if(awake_, [&](std::uint64_t number) {
      const bool is_parked = park(applications_.at(number));
      if (is_parked && last_awake_.size() < kLastAwakeMax) last_awake_.push_back(number);
      return is_parked;
    });
  }
}

/// Returns whether the application is parked now.
bool Service::park(Attached& attached) {
  attached.is_parked = !attached.application->is_leaving() && attached.application->park();
  if (attached.is_parked) wake_at_ = std::min(wake_at_, attached.wake_at = attached.application->wake_at());
  return attached.is_parked;
}

/// Calls `serve`. If memory is short, only this application must leave.
template <typename Serve>
void Service::serve(Application& application, Serve&& serve) {
  if (!base::say(serve)) application.blame("the host engine has no memory for it");
}

/// Returns true if anything happened.
bool Service::serve_awake(base::Instant now) {
  if (awake_.empty()) return are_all_leaving_ = false;
  bool any = false;
  if (!are_all_leaving_)
    for (const auto& [address, engine] : engines_) any |= engine->core->progress();
  const bool is_alone = awake_.size() == 1;
  bool are_leaving = true;
  std::erase_if(awake_, [&](std::uint64_t number) {
    Attached& attached = applications_.at(number);
    Application& application = *attached.application;
    bool asked = false, got = false;
    serve(application, [&] {
      asked = application.take_requests(now, is_alone);
      got = application.give_events();
    });
    any |= asked || got;
    if (!application.fault().empty() && !application.is_leaving()) {
      base::say([&] {
        base::log(LogLevel::warning, LogTopic::engine, {},
                  fmt::format("{} is detached: {}", application.name(), application.fault()));
      });
      application.leave();
    }
    has_gone_ones_ |= application.is_gone();
    are_leaving &= application.is_leaving();
    if (asked || got) attached.busy_at = now;
    return !asked && !got && now - attached.busy_at >= linger_ && park(attached);
  });
  are_all_leaving_ = are_leaving && !any && !awake_.empty();
  return any;
}

void Service::wake(std::uint64_t number, Attached& attached) {
  if (!std::exchange(attached.is_parked, false)) return;
  attached.application->unpark();
  attached.busy_at = base::MonotonicClock::now();
  awake_.push_back(number);
  are_all_leaving_ = false;
}

/// Wakes parked applications whose rate permits the next send.
void Service::wake_due(base::Instant now) {
  wake_at_ = base::kNever;
  for (auto& [number, attached] : applications_) {
    if (!attached.is_parked) continue;
    if (attached.wake_at <= now) {
      wake(number, attached);
    } else {
      wake_at_ = std::min(wake_at_, attached.wake_at);
    }
  }
}

void Service::drop_gone() {
  has_gone_ones_ = false;
  std::erase_if(applications_, [&](auto& entry) {
    Application& application = *entry.second.application;
    if (!application.is_gone()) return false;
    base::say([&] { base::log(LogLevel::info, LogTopic::engine, {}, fmt::format("{} has left", application.name())); });
    std::erase(awake_, entry.first);
    by_secret_.erase(application.secret());
    return true;
  });
}

// Sockets ------------------------------------------------------------------------------------------------------------

/// Polls the sockets; sleeps until `wake_at` if no application is awake, and shortly if all of those leave. After
/// kLookMost the remaining events wait for the next poll, so that a flood of nudges or calls does not delay other
/// applications.
void Service::look_at_sockets(base::Instant wake_at) {
  std::array<epoll_event, 16> events;
  const base::Instant deadline = std::min(visitors_.next_deadline(), accept_at_);
  if (awake_.empty() || are_all_leaving_) {
    const base::Instant until = are_all_leaving_ ? base::MonotonicClock::now() + kBetweenLooksAtLeaving
                                                 : std::min({deadline, wake_at, wake_at_});
    if (wait_.sleep(engines_, poll_.get(), until)) {
      // The engines' news is probably for those that were awake last. They are awake before the pass: otherwise the
      // engine would wake them by their descriptors.
      for (const std::uint64_t number : last_awake_)
        if (const auto found = applications_.find(number); found != applications_.end()) wake(number, found->second);
      for (const auto& [address, engine] : engines_) engine->core->progress();
    }
  }
  bool has_callers = false;
  base::Instant began = base::kNever, now;
  bool was_cut_short = false;
  for (bool is_more = true; is_more && !was_cut_short;) {
    const int count = ::epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()), 0);
    if (began == base::kNever) began = base::MonotonicClock::now();
    for (int i = 0; i < count; ++i) {
      has_callers |= events[i].data.u64 == kVisitors;
      dispatch(events[i].data.u64);
    }
    is_more = count == static_cast<int>(events.size());
    now = base::MonotonicClock::now();
    was_cut_short = is_more && now >= began + kLookMost;
  }
  if (now >= wake_at_) wake_due(now);
  if (has_callers || now >= deadline) greet_visitors();  // removes silent visitors
  const base::Duration gap = awake_.size() < applications_.size() ? kBetweenLooksForParked : kBetweenLooks;
  look_at_ = now + (was_cut_short ? kLookMost : std::max(gap, now - began));
}

void Service::dispatch(std::uint64_t source) {
  if (source == kListener) return accept_visitors();
  if (source == kVisitors) return;  // handled once, after all others
  if (source == kEnd) {
    is_ending_ = true;
    return;
  }
  if (source == kMail) return take_mail();
  const auto found = applications_.find(source >> kIndexBits);
  if (found == applications_.end()) return;
  const auto index = static_cast<std::uint32_t>(source & ((1U << kIndexBits) - 1));
  wake(found->first, found->second);
  Application& application = *found->second.application;
  if (index == kProcess) return application.leave();
  serve(application, [&] {
    if (index == kPairs) return hear_pairs(source, application);
    index == 0 ? hear(source, application) : hear_port(source, application, index - 1);
  });
}

/// Reads calls from a socket. Returns false if more are left: the descriptor is then armed again.
template <typename Take>
bool Service::read_calls(const shm::Socket& socket, std::uint64_t source, Take&& take) {
  std::array<std::byte, sizeof(Call) + 1> bytes;
  for (std::uint32_t i = 0; i < kCallsInTurn; ++i) {
    auto letter = socket.receive(bytes);
    if (!letter) return true;
    if (!take(*letter, std::span(bytes).first(std::min(letter->bytes, bytes.size())))) return true;
  }
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.u64 = source}};
  ::epoll_ctl(poll_.get(), EPOLL_CTL_MOD, socket.descriptor(), &event);
  return false;
}

std::string Service::describe(const engine::Core& core, const Call& call) {
  const base::SocketAddress peer = from_plain(call.address);
  switch (static_cast<Call::Kind>(call.kind)) {
    case Call::Kind::counters:
      return encode_counters(core.facts().counters);
    case Call::Kind::describe_flight:
      return core.describe_flight(peer);
    default:
      return core.describe_failure(peer, status_from(call.number));
  }
}

void Service::hear(std::uint64_t source, Application& application) {
  read_calls(application.socket(), source, [&](const shm::Letter& letter, std::span<const std::byte> bytes) {
    if (letter.bytes == 0 || letter.is_strange) {
      application.leave();
      return false;
    }
    if (shm::Socket::is_nudge(bytes)) return true;
    const auto call = call_from(bytes);
    if (!call) {
      application.blame("it sent a malformed call");
      return false;
    }
    engine::Core& core = application.core();
    switch (static_cast<Call::Kind>(call->kind)) {
      case Call::Kind::next_loss:
        send_answer(application.socket(), answer_loss(*core.active_ports(), call->application));
        break;
      case Call::Kind::peer_facts:
        send_answer(application.socket(), answer_facts(core.peer_facts(from_plain(call->address))));
        break;
      default:
        send_answer(application.socket(), {}, describe(core, *call));
    }
    return true;
  });
}

void Service::hear_port(std::uint64_t source, Application& application, std::uint32_t index) {
  ApplicationPort* const port = application.port(index);
  if (port == nullptr) return;
  bool is_nudged = false;
  read_calls(port->socket(), source, [&](const shm::Letter& letter, std::span<const std::byte> bytes) {
    if (letter.bytes == 0 || letter.is_strange) {
      application.close_port(index, false);
      return false;
    }
    if (shm::Socket::is_nudge(bytes)) {
      is_nudged = true;
    } else {
      application.close_port(index, true);
    }
    return true;
  });
  if (is_nudged) port->nudge();
}

// Handles nudges and the end of the connection. The engine's events only wake the application.
void Service::hear_pairs(std::uint64_t source, Application& application) {
  if (application.pairs() == nullptr) return;
  read_calls(application.pairs()->socket(), source, [&](const shm::Letter& letter, std::span<const std::byte> bytes) {
    if (letter.bytes == 0 || letter.is_strange) {
      application.pairs()->leave();
      return false;
    }
    if (!shm::Socket::is_nudge(bytes)) application.blame("it sent a malformed call");
    return true;
  });
}

}  // namespace fairlead::host
