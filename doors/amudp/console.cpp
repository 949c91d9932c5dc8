#include "doors/amudp/console.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>

#include <fmt/format.h>

#include "base/shown.hpp"
#include "doors/amudp/job_environment.hpp"
#include "doors/amudp/library.hpp"

namespace fairlead::amudp {
namespace {

using namespace std::chrono_literals;

constexpr auto kGreetWithin = 10s;         // time to show the secret before a connection is closed
constexpr auto kStartWithin = 120s;        // time for all ranks to come before the job fails
constexpr auto kAcceptAgainAfter = 100ms;  // pause after a lack of descriptors or memory
// Ranks leave by themselves when told the end. The console kills those that are late, and then waits for nobody.
struct Patience {
  std::chrono::milliseconds kill_after, leave_after;
};
constexpr Patience kAfterExit{3s, 5s};  // ranks may still have to write output
constexpr Patience kAfterDeath{400ms, 800ms};
constexpr auto kKnownWithin = 100ms;  // time to learn how a child ended, after its connection did
static_assert(kKnownWithin + kAfterDeath.leave_after < 1s, "a death ends the job within a second");
constexpr int kAcceptedAtOnce = 16;
constexpr std::uint32_t kRefusalsTold = 3;
constexpr int kNobodyReads = 141;  // the exit code that shells report for a program ended by SIGPIPE

bool is_same_secret(std::span<const std::byte> shown, const std::string& secret) {
  if (shown.size() < kSecretText) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < kSecretText; ++i) {
    const unsigned char wanted = i < secret.size() ? static_cast<unsigned char>(secret[i]) : 0;
    difference |= static_cast<unsigned>(shown[i]) ^ wanted;
  }
  return difference == 0;
}

Payload start_payload(const StartInfo& info, const std::string& environment) {
  std::vector<std::byte> bytes(sizeof info + environment.size());
  std::memcpy(bytes.data(), &info, sizeof info);
  std::memcpy(bytes.data() + sizeof info, environment.data(), environment.size());
  return std::make_shared<const std::vector<std::byte>>(std::move(bytes));
}

Payload text_payload(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
}

}  // namespace

std::unique_ptr<Console> Console::open(const Settings& settings, std::string& error) {
  std::unique_ptr<Console> console(new Console(settings));
  console->address_.secret = settings.secret.empty() ? make_secret() : settings.secret;
  const std::string number = make_secret();
  console->job_ = std::strtoull(number.substr(0, 15).c_str(), nullptr, 16);
  base::FileDescriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in address = settings.listen;
  address.sin_family = AF_INET;
  const int on = 1;
  setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  socklen_t length = sizeof address;
  if (console->address_.secret.empty() || !listener.is_open() ||
      bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener.get(), 1024) != 0 ||
      getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    error = fmt::format("cannot listen at {}:{} for the ranks of the job: {}; AMUDP_MASTERIP names another address",
                        ip_text(address), ntohs(address.sin_port), std::strerror(errno));
    return nullptr;
  }
  console->listener_ = std::move(listener);
  console->address_.where = address;
  return console;
}

void Console::say(const std::string& line) {
  children_.say(fmt::format("{}: {}\n", AMX_ProcessLabel, base::shown_lines(line)));
}

int Console::milliseconds_to_look() const {
  if (!is_started_ && !is_ending_)
    return Clock::now() < accept_again_at_ ? static_cast<int>(kAcceptAgainAfter / 1ms) : 1000;
  if (!is_ending_) return -1;
  const auto now = Clock::now();
  const auto left = (now < kill_at_ ? kill_at_ : leave_at_) - now;
  return static_cast<int>(std::max<std::int64_t>(0, left / 1ms) + 1);
}

int Console::run() {
  begun_ = Clock::now();
  while (!is_over()) {
    look();
    std::erase_if(ranks_, [](const auto& rank) { return rank->is_gone(); });
    check_children();
    check_time();
  }
  return exit_code_;
}

void Console::look() {
  std::vector<pollfd> looks;
  for (const auto& rank : ranks_) {
    const short wanted = rank->connection.has_outgoing() ? POLLIN | POLLOUT : POLLIN;
    looks.push_back({rank->connection.descriptor(), wanted, 0});
  }
  const std::size_t ranks = ranks_.size();
  const bool accepts = listener_.is_open() && Clock::now() >= accept_again_at_;
  if (accepts) looks.push_back({listener_.get(), POLLIN, 0});
  children_.watch(looks);
  poll(looks.data(), looks.size(), milliseconds_to_look());
  for (std::size_t i = 0; i < ranks; ++i) {
    Rank& rank = *ranks_[i];
    if ((looks[i].revents & POLLOUT) != 0 && !rank.is_gone() && !rank.connection.flush()) lose(rank);
    if ((looks[i].revents & ~POLLOUT) != 0 && !rank.is_gone()) serve(rank);
  }
  if (accepts && listener_.is_open() && looks[ranks].revents != 0) accept_some();
  children_.serve();
}

bool Console::is_over() const {
  if (!is_ending_) return false;
  // A console inside rank 0 does not wait for its own process.
  const bool is_alone = std::ranges::all_of(ranks_, [](const auto& rank) { return rank->pid == getpid(); });
  return (is_alone && !children_.has_output()) || Clock::now() >= leave_at_;
}

void Console::check_time() {
  const auto now = Clock::now();
  for (const auto& rank : ranks_) {
    if (rank->rank < 0 && now - rank->since > kGreetWithin) drop(*rank);
  }
  if (!is_started_ && !is_ending_ && now - begun_ > kStartWithin) {
    say(fmt::format("only {} of {} processes have come within {} s: the job ends", greeted_, settings_.processes,
                    kStartWithin / 1s));
    end(1, "not all processes have come");
  }
  if (is_ending_ && now >= kill_at_) children_.kill_all();
}

// Connections --------------------------------------------------------------------------------------------------------

// If there are too many strangers, closes the oldest. A rank shows the secret as soon as it has connected, so the
// oldest stranger is most likely none.
void Console::accept_some() {
  for (int i = 0; i < kAcceptedAtOnce && listener_.is_open(); ++i) {
    base::FileDescriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.is_open()) {
      if (errno == EAGAIN) return;
      if (errno == EINTR || errno == ECONNABORTED || drop_oldest_stranger()) continue;
      // The connection stays in the listener's queue.
      accept_again_at_ = Clock::now() + kAcceptAgainAfter;
      if (!std::exchange(is_short_of_descriptors_, true))
        say(fmt::format("no descriptor for a connection of the job: {}: raise the limit of open files (ulimit -n)",
                        std::strerror(errno)));
      return;
    }
    if (std::ranges::count(ranks_, -1, &Rank::rank) >= static_cast<std::ptrdiff_t>(kStrangersMax))
      drop_oldest_stranger();
    set_up_connection(socket.get());
    ranks_.push_back(std::make_unique<Rank>(Connection(std::move(socket), settings_.waiting_max)));
    serve(*ranks_.back());  // its greeting may have come already
  }
}

bool Console::drop_oldest_stranger() {
  const auto oldest = std::ranges::find(ranks_, -1, &Rank::rank);
  if (oldest == ranks_.end()) return false;
  ranks_.erase(oldest);
  return true;
}

void Console::serve(Rank& rank) {
  const bool is_open = rank.connection.read_some();
  if (is_open) rank.heard = Clock::now();
  while (auto frame = rank.connection.next(rank.rank < 0 ? 64 : kFrameMax)) {
    if (rank.rank < 0) {
      greet(rank, *frame);
      if (rank.rank < 0) return drop(rank);
      continue;
    }
    switch (frame->head.kind) {
      case Frame::gather:
        gather(rank, *frame);
        break;
      case Frame::exit:
        end(frame->head.number);
        break;
      default:
        break;
    }
    if (rank.is_gone()) return;
  }
  if (!is_open || rank.connection.is_broken()) lose(rank);
}

// Anybody may connect at any rate, so only the first refusals are reported.
void Console::refuse(const std::string& why) {
  if (++refused_ <= kRefusalsTold) say(why);
  if (refused_ == kRefusalsTold) say("further refusals are not told");
}

void Console::greet(Rank& rank, const Received& hello) {
  std::uint32_t pid = 0;
  if (hello.head.kind != Frame::hello || hello.payload.size() != kSecretText + sizeof pid ||
      !is_same_secret(hello.payload, address_.secret) || is_started_ || greeted_ >= settings_.processes) {
    return refuse("a connection that did not belong to the job was refused");
  }
  std::memcpy(&pid, hello.payload.data() + kSecretText, sizeof pid);
  std::int32_t number = hello.head.number;
  const auto is_taken = [&](std::int32_t wanted) {
    return std::ranges::any_of(ranks_, [&](const auto& each) { return each->rank == wanted; });
  };
  if (number < 0) {
    for (number = 0; is_taken(number);) ++number;
  }
  if (number >= static_cast<std::int32_t>(settings_.processes) || is_taken(number)) {
    return refuse(
        fmt::format("two processes want to be rank {} of {}: check FAIRLEAD_AM_RANK", number, settings_.processes));
  }
  rank.rank = number;
  rank.pid = static_cast<int>(pid);
  if (++greeted_ == settings_.processes) start_all();
}

// From here on, nobody else is admitted or can connect.
void Console::start_all() {
  is_started_ = true;
  listener_.reset();
  for (const auto& rank : ranks_) {
    if (rank->rank < 0) drop(*rank);
  }
  const StartInfo info{.job = job_, .processes = settings_.processes, .depth = settings_.depth};
  const Payload near = start_payload(info, job_environment(EnvironmentFor::this_host));
  const Payload far = start_payload(info, job_environment(EnvironmentFor::other_hosts));
  for (const auto& rank : ranks_) {
    if (rank->rank >= 0) tell(*rank, Frame::start, rank->rank, rank->connection.stays_on_host() ? near : far);
  }
}

// Messages to the ranks ----------------------------------------------------------------------------------------------

void Console::tell(Rank& rank, Frame kind, std::int32_t number, const Payload& payload) {
  if (rank.is_gone()) return;
  if (!rank.connection.queue(kind, number, payload))
    lose(rank, rank.connection.is_overfull() ? "does not read what it is told" : "");
}

void Console::gather(Rank& rank, const Received& part) {
  rank.has_part = true;
  rank.part = part.payload;
  ++rank.gathers;
  std::vector<const Rank*> in_order(settings_.processes, nullptr);
  for (const auto& each : ranks_) {
    if (each->rank >= 0 && each->has_part) in_order[static_cast<std::size_t>(each->rank)] = each.get();
  }
  if (std::ranges::find(in_order, nullptr) != in_order.end()) return;
  std::size_t bytes = 0;
  for (const Rank* each : in_order) bytes += each->part.size();
  if (bytes > kFrameMax) {
    const std::string why = fmt::format("the parts of a gather have {} bytes, more than {}", bytes, kFrameMax);
    say(why + ": the job ends");
    return end(1, why);
  }
  std::vector<std::byte> all;
  all.reserve(bytes);
  for (const Rank* each : in_order) all.insert(all.end(), each->part.begin(), each->part.end());
  const auto payload = std::make_shared<const std::vector<std::byte>>(std::move(all));
  for (const auto& each : ranks_) {
    if (each->rank < 0) continue;
    each->has_part = false;
    each->part = {};
    tell(*each, Frame::gather, 0, payload);
  }
}

// Handles the end of a rank's connection: normal once the job ends, a death before.
void Console::lose(Rank& rank, std::string_view why) {
  const bool is_death = rank.rank >= 0 && !is_ending_;
  if (!is_death) return drop(rank);
  const std::int32_t number = rank.rank;
  if (why.empty()) children_.wait_for_end_of(rank.pid, static_cast<int>(kKnownWithin / 1ms));
  const auto silent = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - rank.heard);
  const std::string what =
      why.empty() ? "ended without AMX_SPMDExit: " + children_.how_it_ended(rank.pid) : std::string(why);
  const std::string told =
      fmt::format("rank {} (process {}) {}; its last sign of life came {} ms ago, after {} barriers and gathers",
                  number, rank.pid, what, silent.count(), rank.gathers);
  // The job does not end well, even if the rank did by its own account.
  const int code = why.empty() ? children_.exit_code_of(rank.pid).value_or(1) : 1;
  drop(rank);
  say(told + ": the job ends");
  end(code != 0 ? code : 1, told);
}

// Only marks the rank: it is removed from ranks_ after the loop over all of them.
void Console::drop(Rank& rank) {
  rank.rank = -1;
  rank.connection.close();
}

void Console::end(int code, std::string_view why) {
  if (is_ending_) return;
  is_ending_ = true;
  exit_code_ = code;
  listener_.reset();
  const Patience patience = why.empty() ? kAfterExit : kAfterDeath;
  kill_at_ = Clock::now() + patience.kill_after;
  leave_at_ = Clock::now() + patience.leave_after;
  const Payload payload = text_payload(why);
  std::vector<Rank*> in_order;
  for (const auto& rank : ranks_) {
    if (rank->rank >= 0) in_order.push_back(rank.get());
  }
  // If this console runs inside rank 0, that rank comes last, because it ends when told.
  std::ranges::sort(in_order, std::greater(), &Rank::rank);
  for (Rank* rank : in_order) tell(*rank, Frame::exit, code, payload);
}

void Console::check_children() {
  while (const Child* child = children_.take_ended()) {
    const bool is_well = child->how && child->how->si_code == CLD_EXITED && child->how->si_status == 0;
    if (is_started_ || is_ending_ || is_well) continue;
    say(fmt::format("process {} of the job did not start: {}", child->pid, children_.how_it_ended(child->pid)));
    end(1, "a process did not start");
  }
  if (children_.has_lost_reader()) end(kNobodyReads, "nobody reads the output any more");
}

}  // namespace fairlead::amudp
