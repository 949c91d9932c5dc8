// Accepts connections and handles their first call.

#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/log.hpp"
#include "base/say.hpp"
#include "host/map_place.hpp"
#include "host/privileged_ports.hpp"
#include "host/service.hpp"
#include "host/watch_error.hpp"
#include "shm/arena.hpp"

namespace fairlead::host {
namespace {

constexpr std::uint64_t kMemoryMost = 1ULL << 38;                        // bytes of address space; the process has 2^47
constexpr base::Duration kBetweenTries = std::chrono::milliseconds(50);  // between attempts to accept without room

Result<> check_version(const Call& call) {
  if (call.version == kVersion) return {};
  return std::unexpected(Error{Status::not_supported, 0,
                               fmt::format("this host engine speaks version {} and the application version {}: "
                                           "install the same release of fairleadd and of the library",
                                           kVersion, call.version)});
}

void refuse_without_descriptor(const shm::Socket& caller) {
  const Error why = SpareDescriptor::error();
  base::log(LogLevel::warning, LogTopic::engine, {},
            fmt::format("process {} is refused: {}", caller.credentials().process, why.message));
  send_failure(caller, why);
}

/// Tells a caller that its descriptors cannot be watched. Its socket was moved into the application already.
std::unexpected<Error> refuse_moved(const shm::Socket& caller) {
  Error why = cannot_watch(errno);
  send_failure(caller, why);
  return std::unexpected(std::move(why));
}

}  // namespace

/// Accepts one connection. Returns false if there is none.
bool Service::accept_visitor(bool& has_room) {
  auto socket = listener_.accept();
  const bool is_last = !socket && socket.error() == EMFILE && spare_.give();
  if (is_last) socket = listener_.accept();
  if (!socket) {
    has_room = socket.error() == EAGAIN || socket.error() == EINTR || socket.error() == ECONNABORTED;
    if (!has_room && !is_closed_to_visitors_) {
      base::log(LogLevel::warning, LogTopic::engine, {},
                fmt::format("nobody can attach for now: accept failed: {}", std::strerror(socket.error())));
    }
    return false;
  }
  if (!watch(socket->descriptor(), kVisitors, EPOLLIN | EPOLLET)) return true;
  visitors_.add(std::move(*socket), base::MonotonicClock::now(), is_last);
  has_room = !visitors_.is_full() && !is_last;
  return true;
}

/// While there is no room or no descriptor, connections wait and the listener is not polled.
void Service::accept_visitors() {
  if (!listener_.is_open()) return;
  spare_.refill();
  bool has_room = !visitors_.is_full();
  bool is_more = true;
  for (std::uint32_t i = 0; i < kCallsInTurn && has_room && is_more; ++i)
    if (!base::say([&] { is_more = accept_visitor(has_room); })) has_room = false;
  if (has_room == is_closed_to_visitors_)
    watch(listener_.descriptor(), kListener, has_room ? std::uint32_t{EPOLLIN} : 0U, true);
  is_closed_to_visitors_ = !has_room;
  accept_at_ = has_room ? base::kNever : base::MonotonicClock::now() + kBetweenTries;
}

/// Handles the first calls of visitors, and drops visitors that were silent for too long.
void Service::greet_visitors() {
  const auto now = base::MonotonicClock::now();
  visitors_.keep_if([&](Visitor& visitor) {
    std::array<std::byte, sizeof(Call) + 1> bytes;
    auto letter = visitor.socket.receive(bytes);
    if (!letter) return now < visitor.came_at + Visitors::kPatience;
    const auto call = letter->is_strange ? std::nullopt : call_from(std::span(bytes).first(letter->bytes));
    if (visitor.is_last || (letter->is_strange && SpareDescriptor::are_used_up())) {
      refuse_without_descriptor(visitor.socket);
      return false;
    }
    if (!call) return false;
    if (const std::uint32_t thread = thread_for(*call); thread != thread_) {
      pass_on(thread, {.visitor = std::move(visitor), .call = *call, .letter = std::move(*letter)});
    } else {
      greet_or_refuse(visitor, *call, *letter);
    }
    return false;
  });
  accept_visitors();
}

void Service::greet_or_refuse(Visitor& visitor, const Call& call, shm::Letter& letter) {
  // If greet() has moved the socket into an application, that application's destructor has closed it.
  if (!base::say([&] { greet(visitor, call, letter); }))
    send_answer(visitor.socket, {.status = static_cast<std::uint32_t>(Status::no_memory), .system_errno = ENOMEM});
}

// Other threads ------------------------------------------------------------------------------------------------------

/// Returns the thread that handles a first call. What makes no sense is refused by this one.
std::uint32_t Service::thread_for(const Call& call) {
  using Kind = Call::Kind;
  std::uint32_t thread = thread_;
  if (call.kind == static_cast<std::uint32_t>(Kind::attach)) thread = routes_->thread_for(from_plain(call.address));
  if (call.kind == static_cast<std::uint32_t>(Kind::open_port) ||
      call.kind == static_cast<std::uint32_t>(Kind::open_pairs))
    thread = Routes::thread_of_secret(call.application);
  if (call.kind == static_cast<std::uint32_t>(Kind::list)) thread = Routes::thread_of_number(call.application);
  return thread < routes_->threads() ? thread : thread_;
}

void Service::pass_on(std::uint32_t thread, FirstCall call) {
  ::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, call.visitor.socket.descriptor(), nullptr);
  if (workers_.put(thread, call)) return;
  send_failure(call.visitor.socket,
               {Status::again, 0, fmt::format("thread {} of the host engine has too many calls: try again", thread)});
}

/// Handles first calls that the first thread has passed on.
void Service::take_mail() {
  base::say([&] {
    auto taken = mailbox_.take();
    is_interrupted_ |= taken.is_interrupted;
    for (FirstCall& one : taken.calls) {
      const shm::Socket& caller = one.visitor.socket;
      if (!watch(caller.descriptor(), kVisitors, EPOLLIN | EPOLLET)) {
        send_failure(caller, cannot_watch(errno));
        continue;
      }
      greet_or_refuse(one.visitor, one.call, one.letter);
    }
  });
}

void Service::greet(Visitor& visitor, const Call& call, shm::Letter& letter) {
  if (call.kind == static_cast<std::uint32_t>(Call::Kind::list)) {
    if (const auto same = check_version(call); !same) return void(send_failure(visitor.socket, same.error()));
    const auto admitted = admit(visitor.socket);
    if (!admitted) return void(send_failure(visitor.socket, admitted.error()));
    return list(visitor.socket, call);
  }
  if (call.kind == static_cast<std::uint32_t>(Call::Kind::replace)) {
    if (const auto taken = take_asker(visitor); !taken) send_failure(visitor.socket, taken.error());
    return;
  }
  const bool attaches = call.kind == static_cast<std::uint32_t>(Call::Kind::attach);
  const bool is_for_pairs = call.kind == static_cast<std::uint32_t>(Call::Kind::open_pairs);
  const auto done = attaches       ? attach(visitor.socket, call, std::move(letter.descriptors[0]))
                    : is_for_pairs ? open_pairs(visitor.socket, call, letter)
                                   : open_port(visitor.socket, call);
  if (done) return;
  if (attaches) {
    const shm::Credentials& who = visitor.socket.credentials();
    base::log(LogLevel::info, LogTopic::engine, {},
              fmt::format("process {} of user {} may not attach: {}", who.process, who.user, done.error().message));
  }
  send_failure(visitor.socket, done.error());
}

/// Accepts a request for replacement. The answer comes when the next program has taken over, or this one continues.
Result<> Service::take_asker(Visitor& visitor) {
  const shm::Credentials& who = visitor.socket.credentials();
  if (!visitor.socket.is_own() && who.user != 0) {
    return std::unexpected(
        Error{Status::not_permitted, EPERM,
              fmt::format("user {} may not replace this host engine: its own user and root may", who.user)});
  }
  if (asker_.is_open()) return std::unexpected(Error{Status::in_use, 0, "another fairleadd --replace is in progress"});
  ::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, visitor.socket.descriptor(), nullptr);
  asker_ = std::move(visitor.socket);
  is_replacement_wanted_ = true;
  return {};
}

/// Answers with this thread's applications from a number on, as many as the call asks for. Later calls get the others.
/// A visitor sees those of its user; the daemon's own user and root see all.
void Service::list(const shm::Socket& visitor, const Call& call) const {
  const std::uint32_t user = visitor.credentials().user;
  const bool sees_all = visitor.is_own() || user == 0;
  std::vector<std::uint64_t> numbers;
  for (const auto& [number, attached] : applications_)
    if (number >= call.application && (sees_all || attached.application->is_of_user(user))) numbers.push_back(number);
  std::ranges::sort(numbers);
  const std::size_t count =
      std::min<std::size_t>({numbers.size(), kListedMost, call.count == 0 ? kListedMost : call.count});
  std::vector<AttachedFact> facts;
  for (const std::uint64_t number : std::span(numbers).first(count))
    facts.push_back(applications_.at(number).application->fact());
  const std::uint32_t next_thread = thread_ + 1;
  const std::uint64_t rest = next_thread < routes_->threads() ? Routes::first_number(next_thread) : 0;
  send_answer(visitor, {.number = kListedRowBytes, .application = count < numbers.size() ? numbers[count] : rest},
              encode_listing(facts));
}

Result<Quota> Service::admit(const shm::Socket& visitor) const {
  const std::uint32_t user = visitor.credentials().user;
  const Rule* const rule = find_rule(options_.rules, user, visitor.groups());
  if (rule == nullptr && !visitor.is_own() && user != 0) {
    return std::unexpected(Error{Status::not_permitted, EPERM,
                                 fmt::format("user {} may not use this host engine: start fairleadd with "
                                             "--allow-user {} or a --rule, or set FAIRLEAD_CORE=embedded",
                                             user, user)});
  }
  return rule != nullptr ? rule->quota : Quota{};
}

Result<Routes::Seat> Service::take_seat(const shm::Socket& visitor) const {
  return routes_->enter(
      thread_, visitor.credentials().user,
      {.applications_max = options_.applications_max, .per_user_max = options_.applications_per_user_max});
}

Result<> Service::attach(shm::Socket& visitor, const Call& call, base::ForeignDescriptor file) {
  if (auto same = check_version(call); !same) return same;
  const auto quota = admit(visitor);
  if (!quota) return std::unexpected(quota.error());
  auto seat = take_seat(visitor);
  if (!seat) return std::unexpected(std::move(seat.error()));
  if (!file.is_open() || call.memory_bytes <= Layout::head_bytes() || call.memory_bytes > kMemoryMost) {
    return std::unexpected(
        Error{Status::invalid, 0, "an application that attaches shares memory with the host engine"});
  }
  auto memory = shm::Arena::view(file.get(), call.memory_bytes);
  if (!memory) return std::unexpected(std::move(memory.error()));
  auto engine = engine_at(from_plain(call.address), visitor);
  if (!engine) return std::unexpected(std::move(engine.error()));
  const std::shared_ptr<engine::Core> core = (*engine)->core;
  std::uint64_t random = 0;
  const bool is_random = ::getrandom(&random, sizeof random, 0) == sizeof random;
  const std::uint64_t secret = Routes::secret_of(random, thread_);
  if (!is_random || by_secret_.contains(secret))
    return std::unexpected(Error{Status::system, errno, "no random bits: getrandom failed"});
  // Allocates all memory up to Application::make(). After that, nothing can fail for lack of memory.
  MapPlace place(applications_);
  MapPlace place_by_secret(by_secret_);
  if (awake_.capacity() <= applications_.size()) awake_.reserve(2 * applications_.size() + 1);
  auto application = Application::make(
      std::move(visitor), {.memory = std::move(*memory), .file = std::move(file), .bytes = call.memory_bytes}, *engine,
      secret, *quota);
  if (!application) return std::unexpected(std::move(application.error()));

  const std::uint64_t number = next_number_++;
  if (!watch((*application)->socket().descriptor(), number << kIndexBits, EPOLLIN | EPOLLET, true))
    return refuse_moved((*application)->socket());
  // Without a pidfd (foreign PID namespace), only the connections report its end.
  base::FileDescriptor process(static_cast<int>(
      ::syscall(SYS_pidfd_open, static_cast<pid_t>((*application)->socket().credentials().process), 0)));
  if (process.is_open()) watch(process.get(), number << kIndexBits | kProcess, EPOLLIN | EPOLLET);
  base::say([&] {
    base::log(LogLevel::info, LogTopic::engine, core->address().to_string(),
              fmt::format("{} attaches", (*application)->name()));
  });
  send_answer((*application)->socket(), {.number = quota->events,
                                         .operations_max = quota->operations,
                                         .application = secret,
                                         .epoch = core->epoch(),
                                         .message_size_max = core->message_size_max(),
                                         .address = to_plain(core->address())});
  place_by_secret.fill(secret, number);
  Attached& attached = place.fill(number, {.application = std::move(*application),
                                           .seat = std::move(*seat),
                                           .process = std::move(process),
                                           .is_parked = true});
  wake(number, attached);
  return {};
}

Result<std::pair<const std::uint64_t, Service::Attached>*> Service::find(const shm::Socket& visitor, const Call& call) {
  const auto number = by_secret_.find(call.application);
  const auto found = number == by_secret_.end() ? applications_.end() : applications_.find(number->second);
  if (found != applications_.end() && found->second.application->is_of(visitor.credentials())) return &*found;
  return std::unexpected(
      Error{Status::restarted, 0, "this process is not attached here: the daemon was restarted or detached it"});
}

Result<> Service::open_pairs(shm::Socket& visitor, const Call& call, shm::Letter& letter) {
  const auto found = find(visitor, call);
  if (!found) return std::unexpected(found.error());
  auto& [number, attached] = **found;
  auto& [rings_file, file, none] = letter.descriptors;
  if (!rings_file.is_open() || !file.is_open() || call.memory_bytes == 0 || call.memory_bytes > kRegisteredBytesMax) {
    return std::unexpected(Error{Status::invalid, 0,
                                 fmt::format("an application with queue pairs shares two pieces of memory with the "
                                             "host engine, for regions at most {} bytes",
                                             kRegisteredBytesMax)});
  }
  auto rings = shm::Arena::view(rings_file.get(), PairLayout::bytes());
  if (!rings) return std::unexpected(std::move(rings.error()));
  auto memory = shm::Arena::view(file.get(), call.memory_bytes);
  if (!memory) return std::unexpected(std::move(memory.error()));
  Application& application = *attached.application;
  PairMemory shared{.rings = std::move(*rings),
                    .rings_file = std::move(rings_file),
                    .regions = {.memory = std::move(*memory), .file = std::move(file), .bytes = call.memory_bytes}};
  if (auto opened = application.open_pairs(pair_tools_, std::move(shared)); !opened) return opened;
  ApplicationPairs& pairs = *application.pairs();
  pairs.connect(std::move(visitor));
  const std::uint64_t source = number << kIndexBits | kPairs;
  if (!watch(pairs.socket().descriptor(), source, EPOLLIN | EPOLLET, true) ||
      !watch(pairs.descriptor(), source, EPOLLIN | EPOLLET)) {
    auto refused = refuse_moved(pairs.socket());
    pairs.leave();
    return refused;
  }
  send_answer(pairs.socket(), {});
  wake(number, attached);
  return {};
}

Result<> Service::open_port(shm::Socket& visitor, const Call& call) {
  const auto found = find(visitor, call);
  if (!found) return std::unexpected(found.error());
  auto& [number, attached] = **found;
  Application& application = *attached.application;
  const auto answer = application.open_port(call);
  if (!answer) return std::unexpected(answer.error());
  const ApplicationPort& port = application.connect_port(call.index, std::move(visitor));
  if (!watch_port(number, application, call.index, true)) {
    auto refused = refuse_moved(port.socket());
    application.close_port(call.index, false);
    return refused;
  }
  send_answer(port.socket(), *answer);
  wake(number, attached);
  return {};
}

/// `is_known` means that its connection was a visitor's.
bool Service::watch_port(std::uint64_t number, Application& application, std::uint32_t index, bool is_known) {
  const ApplicationPort& port = *application.port(index);
  const std::uint64_t source = number << kIndexBits | (index + 1);
  return watch(port.socket().descriptor(), source, EPOLLIN | EPOLLET, is_known) &&
         watch(application.core().descriptor(port.handle()), source, EPOLLIN | EPOLLET);
}

/// Returns the engine at this address, if the visitor may use it.
Result<std::shared_ptr<ServedEngine>> Service::engine_at(const base::SocketAddress& address,
                                                         const shm::Socket& visitor) {
  const auto is_that = [&](const base::SocketAddress& one) {
    return one.ip == address.ip && one.scope == address.scope && (one.port == 0 || one.port == address.port);
  };
  if (address.ip == base::SocketAddress{}.ip ||
      (!options_.engines.empty() && std::ranges::none_of(options_.engines, is_that))) {
    return std::unexpected(Error{Status::not_available, 0,
                                 fmt::format("this host engine does not serve {}: name it with --engine, or set "
                                             "FAIRLEAD_CORE=embedded",
                                             address.to_string())});
  }
  const std::uint32_t user = visitor.credentials().user;
  const bool is_named = std::ranges::find(options_.engines, address) != options_.engines.end();
  if (is_privileged(address.port) && !is_named && user != 0 && !visitor.is_own()) {
    return std::unexpected(Error{Status::not_permitted, EPERM,
                                 fmt::format("user {} may not use UDP port {}: ports below {} are for root (sysctl "
                                             "net.ipv4.ip_unprivileged_port_start); ask for another, or start "
                                             "fairleadd with --engine {}",
                                             user, address.port, first_unprivileged_port(), address.to_string())});
  }
  return engines_.at(address);
}

}  // namespace fairlead::host
