// Cost of waiting (queue/wait_ladder.hpp): CPU time of engines that wait for nothing; a hop between three threads that
// wait for each other on two processors; a hop between two threads beside a program that computes. The engines are in
// one process and use shared memory, each with its thread.

#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "base/socket_address.hpp"
#include "embedded/attach.hpp"
#include "engine/core.hpp"

namespace {

using namespace fairlead;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kPort = 7;

/// An engine with one port and one posted buffer.
class Station {
 public:
  explicit Station(std::uint8_t host) {
    auto options = engine::EngineOptions::from_environment().value();
    core_ =
        embedded::attach_embedded(*base::SocketAddress::from_ip(fmt::format("127.0.0.{}", host), 0), options).value();
    port_ = core_->open_port(kPort).value();
    if (core_->reserve_events(port_, kEvents) != Status::ok) std::abort();
    post();
  }
  Station(const Station&) = delete;
  Station& operator=(const Station&) = delete;
  ~Station() { core_->close_port(port_); }

  engine::RemotePort place() const { return {core_->address(), kPort}; }

  void send(const engine::RemotePort& to) {
    engine::OperationHandle operation;
    while (core_->send(port_, {.to = to, .part = {{&from_, 1}, 8, kSend}}, operation) == Status::again) {
    }
  }
  /// False if no message comes for a long time.
  bool receive() {
    for (engine::Completion completion;;) {
      while (core_->next_event(port_, completion)) {
        if (completion.cookie == kSend) continue;
        post();
        return true;
      }
      if (!core_->wait(port_, base::MonotonicClock::now() + 10s)) return false;
    }
  }

 private:
  static constexpr std::uint64_t kSend = 1, kReceive = 2;
  static constexpr std::uint32_t kEvents = 8192;  // of sends, not yet taken
  void post() {
    engine::OperationHandle operation;
    const engine::Receive receive{.memory = {&to_, 1}, .size_min = 8, .messages_max = 1, .cookie = kReceive};
    if (core_->post_receive(port_, receive, operation) != Status::ok) std::abort();
  }

  std::array<std::byte, 64> out_{}, in_{};
  iovec from_{out_.data(), out_.size()}, to_{in_.data(), in_.size()};
  std::shared_ptr<engine::Core> core_;
  engine::PortHandle port_;
};

/// Microseconds per hop of a message that goes round the engines.
double round_trip(std::size_t count, int rounds) {
  std::vector<std::unique_ptr<Station>> stations;
  stations.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    stations.push_back(std::make_unique<Station>(static_cast<std::uint8_t>(i + 1)));
  std::barrier start(static_cast<std::ptrdiff_t>(count));
  std::array<Clock::time_point, 2> times;
  std::atomic<bool> is_well{true};
  std::vector<std::jthread> threads;
  threads.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      Station& own = *stations[i];
      const engine::RemotePort next = stations[(i + 1) % count]->place();
      start.arrive_and_wait();
      for (int round = -rounds / 10; round < rounds && is_well; ++round) {
        if (i == 0 && round == 0) times[0] = Clock::now();
        if (i == 0) own.send(next);
        if (!own.receive()) is_well = false;
        if (i != 0) own.send(next);
      }
      if (i == 0) times[1] = Clock::now();
    });
  }
  threads.clear();
  if (!is_well) return -1;
  return std::chrono::duration<double, std::micro>(times[1] - times[0]).count() / rounds / static_cast<double>(count);
}

double processor_seconds() {
  rusage use{};
  ::getrusage(RUSAGE_SELF, &use);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

/// CPU time of one engine in percent, beside a thread that waits for a message that never comes.
double idle(double for_seconds) {
  Station first(1), second(2);
  first.send(second.place());
  second.receive();
  std::jthread waiter([&](const std::stop_token& stop) {
    while (!stop.stop_requested() && second.receive()) {
    }
  });
  std::this_thread::sleep_for(100ms);
  const double before = processor_seconds();
  std::this_thread::sleep_for(std::chrono::duration<double>(for_seconds));
  const double used = processor_seconds() - before;
  waiter.request_stop();
  first.send(second.place());
  return 100 * used / for_seconds / 2;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What waiting costs: idle engines, and hops where processors are scarce.");
  double seconds = 10;
  int rounds = 20000;
  app.add_option("--idle-seconds", seconds, "how long idle engines are watched")->check(CLI::Range(0.1, 60.0));
  app.add_option("--rounds", rounds, "rounds of the message")->check(CLI::Range(100, 10'000'000));
  std::size_t threads = 0;
  app.add_option("--threads", threads, "only hops between so many")->check(CLI::Range(2, 16));
  CLI11_PARSE(app, argc, argv);
  if (threads > 0) {
    fmt::print("{} threads, a hop: {:.3f} us\n", threads, round_trip(threads, rounds));
    return 0;
  }
  fmt::print("two threads, a hop:                        {:8.3f} us\n", round_trip(2, rounds));
  fmt::print("three threads, a hop (goal on two cores 2): {:7.3f} us\n", round_trip(3, rounds));
  {
    std::jthread hog([](const std::stop_token& stop) {
      for (volatile unsigned work = 0; !stop.stop_requested();) work = work + 1;
    });
    fmt::print("two threads beside a hog, a hop (goal 40):  {:7.3f} us\n", round_trip(2, rounds / 10));
  }
  fmt::print("idle engine (goal 0.1):                     {:7.4f} % of a processor over {} s\n", idle(seconds),
             seconds);
  return 0;
}
