// Cost of repeated replacements of a host's fairleadd. A hundred applications are attached, and a thousand peers, each
// an engine, send to them without pause. Reports how long the daemon served nobody and the longest wait of a peer.
// Checks that each message arrived once and complete.

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/socket_address.hpp"
#include "base/time.hpp"
#include "embedded/attach.hpp"
#include "engine/core.hpp"
#include "host/attach.hpp"
#include "host/replacement.hpp"

namespace {

using namespace fairlead;
using namespace std::chrono_literals;

constexpr std::uint32_t kFirstPort = 100, kEnginesOfProcess = 250;
constexpr std::size_t kBytes = 4096;
constexpr double kPauseGoalMs = 200;

[[noreturn]] void stop(std::string_view what) {
  fmt::print(stderr, "replacement_bench: {}\n", what);
  std::_Exit(1);
}

/// What a process reports at its end.
struct Report {
  std::uint64_t messages = 0;
  base::Duration longest{};  // from a message's submission to its end
};

std::byte pattern_at(std::uint64_t seed, std::size_t index) {
  return static_cast<std::byte>(seed * 131 + index * 7 + (index >> 8));
}

/// A child process that works until told to end.
class Worker {
 public:
  using Work = std::function<Report(const std::function<void()>& is_ready, const std::function<bool()>& has_to_end)>;

  explicit Worker(const Work& work) {
    if (::pipe(orders_) != 0 || ::pipe(words_) != 0 || (process_ = ::fork()) < 0) stop("no further process");
    if (process_ != 0) {
      ::close(orders_[0]);
      ::close(words_[1]);
      return;
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close(orders_[1]);
    const auto has_to_end = [&] {
      char order = 0;
      pollfd readable{orders_[0], POLLIN, 0};
      return ::poll(&readable, 1, 0) == 1 && ::read(orders_[0], &order, 1) == 1;
    };
    const Report report = work([&] { tell('r'); }, has_to_end);
    if (::write(words_[1], &report, sizeof report) != sizeof report) std::_Exit(1);
    std::_Exit(0);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void wait_until_ready() const {
    char word = 0;
    if (::read(words_[0], &word, 1) != 1) stop("a process has ended before its time");
  }
  void tell_end() const {
    if (::write(orders_[1], "e", 1) != 1) stop("a process does not listen");
  }
  Report finish() const {
    Report report;
    if (::read(words_[0], &report, sizeof report) != sizeof report) stop("a process has failed");
    ::waitpid(process_, nullptr, 0);
    return report;
  }

 private:
  void tell(char word) const {
    if (::write(words_[1], &word, 1) != 1) std::_Exit(1);
  }

  int orders_[2] = {}, words_[2] = {};
  pid_t process_ = -1;
};

/// An engine's port that receives and verifies messages.
class Receiver {
 public:
  Receiver(std::shared_ptr<engine::Core> core, std::uint32_t number, std::uint32_t count)
      : buffers_(count), memory_(count), core_(std::move(core)) {
    auto port = core_->open_port(number);
    if (!port) stop(port.error().message);
    port_ = *port;
    if (core_->reserve_events(port_, count) != Status::ok) stop("no room for events");
    for (std::uint64_t i = 0; i < count; ++i) {
      memory_[i] = {buffers_[i].data(), kBytes};
      post(i);
    }
  }
  void wait() { core_->wait(port_, base::MonotonicClock::now() + 20ms); }
  std::uint64_t take() {
    std::uint64_t count = 0;
    for (engine::Completion completion; core_->next_event(port_, completion); ++count) {
      if (completion.status != Status::ok || completion.length != kBytes)
        stop(fmt::format("a receive ended as {}", to_string(completion.status)));
      const auto& bytes = buffers_[completion.cookie];
      std::uint64_t seed = 0;
      std::memcpy(&seed, bytes.data(), sizeof seed);
      for (std::size_t i = sizeof seed; i < kBytes; ++i)
        if (bytes[i] != pattern_at(seed, i)) stop("a message is not what was sent");
      post(completion.cookie);
    }
    return count;
  }

 private:
  void post(std::uint64_t index) {
    engine::OperationHandle operation;
    const Status status = core_->post_receive(
        port_, {.memory = {&memory_[index], 1}, .size_min = kBytes, .messages_max = 1, .cookie = index}, operation);
    if (status != Status::ok) stop(fmt::format("a buffer was refused: {}", to_string(status)));
  }

  std::vector<std::array<std::byte, kBytes>> buffers_;
  std::vector<iovec> memory_;
  std::shared_ptr<engine::Core> core_;
  engine::PortHandle port_;
};

/// A peer: an engine with an address of its own and one message in flight.
class Sender {
 public:
  Sender(std::uint32_t number, const engine::RemotePort& to) : to_(to), seed_(std::uint64_t{number} << 32) {
    auto options = engine::EngineOptions::from_environment();
    if (!options || !options->set("path", "udp")) stop("the environment has options that there are not");
    // Engines share one IP address: the kernel keeps at most 1024 neighbours (net.ipv4.neigh.default.gc_thresh3), also
    // on the loopback.
    const auto port = static_cast<std::uint16_t>(21000 + number);
    auto core = embedded::attach_embedded(*base::SocketAddress::from_ip("127.1.0.1", port), *options);
    if (!core) stop(core.error().message);
    core_ = *core;
    port_ = core_->open_port(1).value();
    if (core_->reserve_events(port_, 1) != Status::ok) stop("no room for events");
  }
  bool is_busy() const { return is_busy_; }
  void send() {
    std::memcpy(bytes_.data(), &++seed_, sizeof seed_);
    for (std::size_t i = sizeof seed_; i < kBytes; ++i) bytes_[i] = pattern_at(seed_, i);
    engine::OperationHandle operation;
    const engine::Send send{.to = to_, .part = {{&memory_, 1}, kBytes, 0}, .is_confirmed = true};
    sent_at_ = base::MonotonicClock::now();
    is_busy_ = core_->send(port_, send, operation) == Status::ok;
  }
  void look(Report& report) {
    engine::Completion completion;
    if (!core_->next_event(port_, completion)) return;
    if (completion.status != Status::ok)
      stop(fmt::format("a message ended as {}: {}", to_string(completion.status), core_->describe_peer(to_.engine)));
    ++report.messages;
    report.longest = std::max(report.longest, base::MonotonicClock::now() - sent_at_);
    is_busy_ = false;
  }

 private:
  const engine::RemotePort to_;
  std::uint64_t seed_;
  std::array<std::byte, kBytes> bytes_{};
  iovec memory_{bytes_.data(), kBytes};
  std::shared_ptr<engine::Core> core_;
  engine::PortHandle port_;
  base::Instant sent_at_;
  bool is_busy_ = false;
};

Worker::Work application(const std::string& socket, std::uint32_t number, std::uint32_t receives) {
  return [=](const auto& is_ready, const auto& has_to_end) {
    const auto options = engine::EngineOptions::from_environment();
    auto core = host::attach_host(socket, *base::SocketAddress::from_ip("127.0.0.1", 0), options.value());
    if (!core) stop(core.error().message);
    Receiver receiver(*core, kFirstPort + number, receives);
    is_ready();
    Report report;
    while (!has_to_end()) {
      receiver.wait();
      report.messages += receiver.take();
    }
    report.messages += receiver.take();
    return report;
  };
}

Worker::Work peers(std::uint32_t first, std::uint32_t count, std::uint32_t applications, base::Duration every) {
  return [=](const auto& is_ready, const auto& has_to_end) {
    const auto hub = *base::SocketAddress::from_ip("127.0.0.1", 20480);
    std::vector<std::unique_ptr<Sender>> senders;
    Report report;
    for (std::uint32_t i = first; i < first + count; ++i) {  // one at a time, because a connecting engine soon gives up
      senders.push_back(std::make_unique<Sender>(i, engine::RemotePort{hub, kFirstPort + i % applications}));
      for (senders.back()->send(); senders.back()->is_busy();) {
        senders.back()->look(report);
        std::this_thread::sleep_for(1ms);
      }
    }
    report.longest = {};
    is_ready();
    const auto look_at_all = [&] {
      bool is_any_busy = false;
      for (const auto& sender : senders) {
        sender->look(report);
        is_any_busy |= sender->is_busy();
      }
      return is_any_busy;
    };
    for (auto turn = base::MonotonicClock::now(); !has_to_end(); turn += every) {
      for (const auto& sender : senders)
        if (!sender->is_busy()) sender->send();
      do {
        look_at_all();
        std::this_thread::sleep_for(2ms);
      } while (base::MonotonicClock::now() < turn + every);
    }
    while (look_at_all()) std::this_thread::sleep_for(2ms);
    return report;
  };
}

/// Waits for all workers and merges their reports.
Report finish(const std::vector<std::unique_ptr<Worker>>& workers) {
  for (const auto& worker : workers) worker->tell_end();
  Report sum;
  for (const auto& worker : workers) {
    const Report one = worker->finish();
    sum.messages += one.messages;
    sum.longest = std::max(sum.longest, one.longest);
  }
  return sum;
}

double milliseconds(base::Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("how long a host engine stands still when its program is replaced");
  std::uint32_t applications = 100, receives = 32, peer_count = 1000, times = 20;
  std::uint32_t every_ms = 500;
  std::string program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "fairleadd";
  app.add_option("--applications", applications, "that are attached")->capture_default_str();
  app.add_option("--receives", receives, "buffers that each of them has posted")->capture_default_str();
  app.add_option("--peers", peer_count, "engines that send to them")->capture_default_str();
  app.add_option("--times", times, "that the daemon is replaced")->capture_default_str();
  app.add_option("--every", every_ms, "milliseconds between two messages of a peer")->capture_default_str();
  app.add_option("--daemon", program)->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  char folder[] = "/tmp/replacement-XXXXXX";
  const std::string socket = std::string(::mkdtemp(folder)) + "/host";
  ::setenv("FAIRLEAD_PATH", "udp", 1);
  std::vector<std::string> words{program, "--socket", socket, "--applications", "1000", "--applications-per-user",
                                 "1000"};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t daemon = ::fork();
  if (daemon < 0) stop("no further process");
  if (daemon == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::execv(program.c_str(), arguments.data());
    stop("cannot start " + program);
  }
  for (int i = 0; i < 1000 && !std::filesystem::exists(socket); ++i) std::this_thread::sleep_for(10ms);

  std::vector<std::unique_ptr<Worker>> receivers, senders;
  for (std::uint32_t i = 0; i < applications; ++i)
    receivers.push_back(std::make_unique<Worker>(application(socket, i, receives)));
  for (const auto& one : receivers) one->wait_until_ready();
  for (std::uint32_t i = 0; i < peer_count; i += kEnginesOfProcess) {
    const std::uint32_t count = std::min(kEnginesOfProcess, peer_count - i);
    senders.push_back(std::make_unique<Worker>(peers(i, count, applications, every_ms * 1ms)));
  }
  for (const auto& one : senders) one->wait_until_ready();

  std::vector<double> pauses;
  for (std::uint32_t i = 0; i < times; ++i) {
    std::this_thread::sleep_for(200ms);
    const auto replaced = host::ask_for_replacement(socket);
    if (!replaced) stop(replaced.error().message);
    pauses.push_back(std::stod(*replaced));
  }
  const Report sent = finish(senders), received = finish(receivers);
  ::kill(daemon, SIGTERM);
  ::waitpid(daemon, nullptr, 0);
  std::filesystem::remove_all(folder);
  std::ranges::sort(pauses);
  const double most = pauses.empty() ? 0 : pauses.back();
  fmt::print("{} applications with {} receives each, {} peers, {} messages of {} bytes, {} replacements\n",
             applications, receives, peer_count, sent.messages, kBytes, times);
  if (!pauses.empty())
    fmt::print("stood still for {:.1f} ms in the median, {:.1f} ms at most (goal {:.0f}); ", pauses[pauses.size() / 2],
               most, kPauseGoalMs);
  fmt::print("the longest message took {:.1f} ms\n", milliseconds(sent.longest));
  if (sent.messages != received.messages) stop(fmt::format("{} messages were received", received.messages));
  fmt::print("each message has come once, and all verified\n");
  return most <= kPauseGoalMs ? 0 : 1;
}
