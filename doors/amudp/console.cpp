#include "doors/amudp/console.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>

#include <fmt/format.h>

#include "base/environment.hpp"
#include "doors/amudp/library.hpp"

namespace fairlead::amudp {
namespace {

using namespace std::chrono_literals;

constexpr auto kGreetWithin = 10s;   // a connection without the secret is closed then
constexpr auto kStartWithin = 120s;  // all ranks have come, or the job fails
// Ranks that are told the end leave by themselves; what has not left by then is killed, and then nobody is waited for.
struct Patience {
  std::chrono::milliseconds kill_after, leave_after;
};
constexpr Patience kAfterExit{3s, 5s};  // output may still have to be written
constexpr Patience kAfterDeath{400ms, 800ms};
constexpr auto kKnownWithin = 100ms;  // how a child ended, after its connection did
static_assert(kKnownWithin + kAfterDeath.leave_after < 1s, "a death ends the job within a second");
constexpr std::size_t kStrangersMax = 64;
constexpr std::size_t kLineMax = 16384;  // longer lines are written in pieces

bool is_same_secret(std::span<const std::byte> shown, const std::string& secret) {
  if (shown.size() < kSecretText) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < kSecretText; ++i) {
    const unsigned char wanted = i < secret.size() ? static_cast<unsigned char>(secret[i]) : 0;
    difference |= static_cast<unsigned>(shown[i]) ^ wanted;
  }
  return difference == 0;
}

std::vector<std::byte> start_payload(const StartInfo& info) {
  std::vector<std::byte> bytes(sizeof info);
  std::memcpy(bytes.data(), &info, sizeof info);
  for (const std::string_view each : base::whole_environment()) {
    const auto* text = reinterpret_cast<const std::byte*>(each.data());
    bytes.insert(bytes.end(), text, text + each.size() + 1);
  }
  return bytes;
}

void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

std::unique_ptr<Console> Console::open(const Settings& settings, std::string& error) {
  std::unique_ptr<Console> console(new Console(settings));
  console->address_.secret = settings.secret.empty() ? make_secret() : settings.secret;
  const std::string number = make_secret();
  console->job_ = std::strtoull(number.substr(0, 15).c_str(), nullptr, 16);
  console->listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in address = settings.listen;
  address.sin_family = AF_INET;
  const int on = 1;
  setsockopt(console->listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  socklen_t length = sizeof address;
  if (console->address_.secret.empty() || console->listener_ < 0 ||
      bind(console->listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(console->listener_, 1024) != 0 ||
      getsockname(console->listener_, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    error = fmt::format("cannot listen at {}:{} for the ranks of the job: {}; AMUDP_MASTERIP names another address",
                        ip_text(address), ntohs(address.sin_port), std::strerror(errno));
    return nullptr;
  }
  console->address_.where = address;
  return console;
}

Console::~Console() {
  if (listener_ >= 0) close(listener_);
}

int Console::milliseconds_to_look() const {
  if (!is_ending_) {
    if (!is_started_) return 200;  // children may end before they connect
    return std::ranges::any_of(ranks_, [](const auto& rank) { return rank->rank < 0; }) ? 1000 : -1;
  }
  const auto now = Clock::now();
  const auto left = (now < kill_at_ ? kill_at_ : leave_at_) - now;
  return static_cast<int>(std::max<std::int64_t>(0, left / 1ms) + 1);
}

int Console::run() {
  const auto begun = Clock::now();
  for (;;) {
    std::vector<pollfd> looks{{listener_, POLLIN, 0}};
    for (const auto& rank : ranks_) looks.push_back({rank->connection->descriptor(), POLLIN, 0});
    const std::size_t ranks = ranks_.size(), children = children_.size();
    for (const Child& child : children_) looks.push_back({child.output, POLLIN, 0});
    poll(looks.data(), looks.size(), milliseconds_to_look());
    for (std::size_t i = 0; i < ranks; ++i) {
      if (looks[1 + i].revents != 0) serve(*ranks_[i]);
    }
    for (std::size_t i = 0; i < children; ++i) {
      if (looks[1 + ranks + i].revents != 0) route_output(children_[i]);
    }
    if (looks[0].revents != 0) accept_one();
    reap();
    const auto now = Clock::now();
    std::erase_if(ranks_, [&](const auto& rank) {
      return rank->connection->descriptor() < 0 || rank->connection->is_broken() ||
             (rank->rank < 0 && now - rank->since > kGreetWithin);
    });
    if (!is_started_ && !is_ending_ && now - begun > kStartWithin) {
      fmt::print(stderr, "{}: only {} of {} processes have come within {} s: the job ends\n", AMX_ProcessLabel,
                 greeted_, settings_.processes, kStartWithin / 1s);
      end(1, "not all processes have come");
    }
    if (!is_ending_) continue;
    if (now >= kill_at_) kill_children();
    const bool has_output = std::ranges::any_of(children_, [](const Child& child) { return child.output >= 0; });
    // A console inside rank 0 does not wait for itself.
    const bool is_alone = std::ranges::all_of(ranks_, [](const auto& rank) { return rank->pid == getpid(); });
    if ((is_alone && !has_output) || now >= leave_at_) return exit_code_;
  }
}

void Console::accept_one() {
  const int descriptor = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (descriptor < 0) return;
  if (std::ranges::count(ranks_, -1, &Rank::rank) >= static_cast<std::ptrdiff_t>(kStrangersMax + settings_.processes)) {
    close(descriptor);
    return;
  }
  set_up_connection(descriptor);
  ranks_.push_back(std::make_unique<Rank>());
  ranks_.back()->connection = std::make_unique<Connection>(descriptor);
}

void Console::serve(Rank& rank) {
  const bool is_open = rank.connection->read_some();
  if (is_open) rank.heard = Clock::now();
  while (auto frame = rank.connection->next(rank.rank < 0 ? 64 : kFrameMax)) {
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
  }
  if (!is_open || rank.connection->is_broken()) lose(rank);
}

void Console::greet(Rank& rank, const Received& hello) {
  std::uint32_t pid = 0;
  if (hello.head.kind != Frame::hello || hello.payload.size() != kSecretText + sizeof pid ||
      !is_same_secret(hello.payload, address_.secret) || is_started_ || greeted_ >= settings_.processes) {
    fmt::print(stderr, "{}: a connection that did not belong to the job was refused\n", AMX_ProcessLabel);
    return;
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
    fmt::print(stderr, "{}: two processes want to be rank {} of {}: check FAIRLEAD_AM_RANK\n", AMX_ProcessLabel, number,
               settings_.processes);
    return;
  }
  rank.rank = number;
  rank.pid = static_cast<int>(pid);
  if (++greeted_ == settings_.processes) start_all();
}

void Console::start_all() {
  is_started_ = true;
  const auto payload = start_payload({.job = job_, .processes = settings_.processes, .depth = settings_.depth});
  for (const auto& rank : ranks_) {
    if (rank->rank >= 0) rank->connection->send(Frame::start, rank->rank, payload);
  }
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
  std::vector<std::byte> all;
  for (const Rank* each : in_order) all.insert(all.end(), each->part.begin(), each->part.end());
  for (const auto& each : ranks_) {
    if (each->rank < 0) continue;
    each->has_part = false;
    each->connection->send(Frame::gather, 0, all);
  }
}

// Its connection has ended. That is right once the job ends, and a death before.
void Console::lose(Rank& rank) {
  if (rank.rank >= 0 && !is_ending_) {
    wait_for_end_of(rank.pid);
    const auto silent = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - rank.heard);
    const std::string why = fmt::format(
        "rank {} (process {}) ended without AMX_SPMDExit: {}; its last sign of life came {} ms ago, after "
        "{} barriers and gathers",
        rank.rank, rank.pid, how_it_ended(rank.pid), silent.count(), rank.gathers);
    fmt::print(stderr, "{}: {}: the job ends\n", AMX_ProcessLabel, why);
    end(1, why);
  }
  drop(rank);
}

void Console::drop(Rank& rank) {
  rank.rank = -1;
  rank.since = Clock::time_point::min() + kGreetWithin;
  {
    const Connection closed = std::move(*rank.connection);
  }
}

void Console::end(int code, std::string_view why) {
  if (is_ending_) return;
  is_ending_ = true;
  exit_code_ = code;
  const Patience patience = why.empty() ? kAfterExit : kAfterDeath;
  kill_at_ = Clock::now() + patience.kill_after;
  leave_at_ = Clock::now() + patience.leave_after;
  // Ourselves last, if this is the console inside rank 0: when told, it ends.
  std::ranges::sort(ranks_, std::greater(), &Rank::rank);
  for (const auto& rank : ranks_) {
    if (rank->rank >= 0) rank->connection->send(Frame::exit, code, std::as_bytes(std::span(why)));
  }
}

// Children ------------------------------------------------------------------------------------------------------------

// Whole lines, so that those of several ranks do not mix.
bool Console::route_output(Child& child) {
  char piece[16384];
  const ssize_t count = read(child.output, piece, sizeof piece);
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  const int to = child.is_error_output ? STDERR_FILENO : STDOUT_FILENO;
  if (count <= 0) {
    write_all(to, child.line);
    close(child.output);
    child.output = -1;
    return false;
  }
  child.line.append(piece, static_cast<std::size_t>(count));
  const std::size_t end = child.line.size() > kLineMax ? child.line.size() : child.line.rfind('\n') + 1;
  write_all(to, std::string_view(child.line).substr(0, end));
  child.line.erase(0, end);
  return true;
}

void Console::reap() {
  for (const Child& child : children_) {
    int status = 0;
    if (child.is_error_output || std::ranges::find(ended_, child.pid, &std::pair<int, int>::first) != ended_.end())
      continue;
    if (waitpid(child.pid, &status, WNOHANG) != child.pid) continue;
    ended_.emplace_back(child.pid, status);
    if (is_started_ || is_ending_ || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) continue;
    fmt::print(stderr, "{}: process {} of the job did not start: {}\n", AMX_ProcessLabel, child.pid,
               how_it_ended(child.pid));
    end(1, "a process did not start");
  }
}

// A process closes its connections a little before its end can be asked for.
void Console::wait_for_end_of(int pid) {
  if (std::ranges::find(children_, pid, &Child::pid) == children_.end()) return;
  const int process = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (process < 0) return;
  pollfd look{process, POLLIN, 0};
  poll(&look, 1, static_cast<int>(kKnownWithin / 1ms));
  close(process);
  reap();
}

void Console::kill_children() {
  for (const Child& child : children_) {
    if (std::ranges::find(ended_, child.pid, &std::pair<int, int>::first) == ended_.end()) kill(child.pid, SIGKILL);
  }
}

std::string Console::how_it_ended(int pid) {
  const auto found = std::ranges::find(ended_, pid, &std::pair<int, int>::first);
  if (found == ended_.end()) return "its connection closed";
  if (WIFSIGNALED(found->second))
    return fmt::format("killed by signal {} ({})", WTERMSIG(found->second), strsignal(WTERMSIG(found->second)));
  return fmt::format("exit code {}", WEXITSTATUS(found->second));
}

}  // namespace fairlead::amudp
