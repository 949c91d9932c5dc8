// Cost of idle peers of the same host that are connected through shared memory: the time of a ping-pong with one more
// peer, and of a pass that finds nothing, beside 1, 100 and 1000 idle peers. One thread drives both talking engines, so
// the figures repeat within a few percent. The idle peers are engines of other processes.

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

#include "base/file_descriptor.hpp"
#include "base/socket_address.hpp"
#include "embedded/attach.hpp"
#include "engine/core.hpp"

namespace {

using namespace fairlead;
using namespace std::chrono_literals;

constexpr std::uint32_t kPort = 7;
constexpr std::uint32_t kEnginesOfProcess = 50;
constexpr int kRuns = 9;
constexpr int kExchanges = 20'000, kPasses = 200'000;
constexpr double kGrowthGoal = 1.10;

[[noreturn]] void stop(std::string_view what) {
  fmt::print(stderr, "local_peers_bench: {}\n", what);
  std::_Exit(1);
}

/// An engine with one port and some posted buffers.
class Resident {
 public:
  /// Resident `number` has its own address.
  explicit Resident(std::uint32_t number) {
    auto options = engine::EngineOptions::from_environment();
    if (!options) stop(options.error().message);
    if (auto set = options->set("path", "shm"); !set) stop(set.error().message);
    auto core = embedded::attach_embedded(
        *base::SocketAddress::from_ip(fmt::format("127.1.{}.{}", number / 200, number % 200 + 1), 0), *options);
    if (!core) stop(core.error().message);
    core_ = *core;
    port_ = core_->open_port(kPort).value();
    if (core_->reserve_events(port_, kEvents) != Status::ok) stop("no room for events");
    for (int i = 0; i < kBuffers; ++i) post();
  }

  engine::RemotePort place() const { return {core_->address(), kPort}; }
  engine::Core& core() { return *core_; }

  void send(const engine::RemotePort& to) {
    engine::OperationHandle operation;
    while (core_->send(port_, {.to = to, .part = {{&from_, 1}, 8, kSend}}, operation) == Status::again)
      core_->progress();
  }
  /// Takes all events. Counts received messages and ended sends.
  void take(std::uint64_t& messages, std::uint64_t& ends) {
    for (engine::Completion completion; core_->next_event(port_, completion);) {
      if (completion.status != Status::ok) stop("a message failed");
      if (completion.cookie == kReceive) post();
      ++(completion.cookie == kReceive ? messages : ends);
    }
  }

 private:
  static constexpr std::uint64_t kSend = 1, kReceive = 2;
  static constexpr std::uint32_t kEvents = 4096;
  static constexpr int kBuffers = 1024;

  void post() {
    engine::OperationHandle operation;
    const engine::Receive receive{.memory = {&to_, 1}, .size_min = 8, .messages_max = 1, .cookie = kReceive};
    if (core_->post_receive(port_, receive, operation) != Status::ok) stop("a buffer was refused");
  }

  std::array<std::byte, 64> out_{}, in_{};
  iovec from_{out_.data(), out_.size()}, to_{in_.data(), in_.size()};
  std::shared_ptr<engine::Core> core_;
  engine::PortHandle port_;
};

/// Starts a process with the engines `first` to `first + engines - 1`. Each sends one message to `hub` and stays.
void settle(std::uint32_t first, std::uint32_t engines, const engine::RemotePort& hub) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::vector<std::unique_ptr<Resident>> residents;
  std::uint64_t messages = 0, ends = 0;
  for (std::uint32_t i = 0; i < engines; ++i) {
    residents.push_back(std::make_unique<Resident>(first + i));
    residents.back()->send(hub);
    while (ends == i) {
      residents.back()->core().progress();
      residents.back()->take(messages, ends);
    }
  }
  for (;;) pause();
}

struct Sample {
  double median_ns = 0, best_ns = 0;
};
Sample sample(int count, const std::function<void()>& once) {
  std::vector<double> times;
  for (int run = 0; run < kRuns; ++run) {
    const auto begun = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) once();
    times.push_back(std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begun).count() / count);
  }
  std::ranges::sort(times);
  return {times[kRuns / 2], times[0]};
}

/// One message in each direction, with the events of both sends.
void exchange(Resident& near, Resident& far) {
  const auto one_way = [](Resident& from, Resident& to) {
    std::uint64_t messages = 0, ends = 0;
    from.send(to.place());
    while (messages == 0) {
      to.core().progress();
      to.take(messages, ends);
    }
  };
  one_way(near, far);
  one_way(far, near);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("messages and idle passes of an engine beside idle peers of the same host");
  std::vector<std::uint32_t> counts{1, 100, 1000};
  app.add_option("--peers", counts, "numbers of idle peers, growing")->delimiter(',')->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);

  Resident hub(0), partner(1);
  std::vector<pid_t> children;
  std::uint64_t met = 0, ends = 0;
  std::uint32_t settled = 0;
  Sample first, first_pass;
  for (const std::uint32_t count : counts) {
    while (settled < count) {
      const std::uint32_t engines = std::min(kEnginesOfProcess, count - settled);
      const pid_t child = fork();
      if (child < 0) stop("no further process");
      if (child == 0) settle(settled + 2, engines, hub.place());
      children.push_back(child);
      settled += engines;
      while (met < settled) {
        hub.core().progress();
        hub.take(met, ends);
      }
    }
    // Warm up. Afterwards the hub no longer watches the other peers.
    for (int i = 0; i < kExchanges; ++i) exchange(hub, partner);
    const Sample message = sample(kExchanges, [&] { exchange(hub, partner); });
    const Sample pass = sample(kPasses, [&] { hub.core().progress(); });
    if (first.best_ns == 0) first = message, first_pass = pass;
    fmt::print(
        "{:5} idle peers: a message and its answer {:6.1f} ns (best {:6.1f}, {:.3f} of the first row's, goal {:.2f}); "
        "an idle pass {:5.1f} ns (best {:5.1f}, {:.3f})\n",
        count, message.median_ns, message.best_ns, message.best_ns / first.best_ns, kGrowthGoal, pass.median_ns,
        pass.best_ns, pass.best_ns / first_pass.best_ns);
    std::fflush(stdout);
  }
  for (const pid_t child : children) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  return 0;
}
