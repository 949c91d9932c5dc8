// Deadlines and cancels. Cost to arm and disarm a deadline while N others are armed; cost to cancel one of N messages
// to a stopped peer; time from a deadline to its callback; and time of a stop that cancels 1000 messages to such a
// peer. Over UDP and through shared memory.

#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fairlead/net.hpp>

#include "base/timer_wheel.hpp"

namespace {

using namespace fairlead;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr double kPairGoalNs = 200;
constexpr auto kLatenessGoal = 2ms, kStopGoal = 10ms;

struct Armed {
  Instant due;
  base::TimerWheelHook hook;
};

double ns_each(Clock::duration span, std::size_t count) {
  return std::chrono::duration<double, std::nano>(span).count() / static_cast<double>(count);
}

void measure_arming() {
  constexpr std::size_t kPairs = 1'000'000;
  for (const std::size_t armed : {0UL, 1000UL, 100'000UL, 1'000'000UL}) {
    auto wheel = std::make_unique<base::TimerWheel<Armed, &Armed::hook, Instant, &Armed::due>>();
    std::mt19937_64 random(1);
    std::vector<Armed> others(armed), own(std::min(kPairs, std::size_t{4096}));
    const Instant now = Clock::now();
    (void)wheel->take_due(now);
    const auto later = [&] { return now + 1ms + std::chrono::nanoseconds(random() % 30'000'000'000); };
    for (Armed& one : others) one.due = later(), wheel->add(one);
    for (Armed& one : own) one.due = later();
    const auto begin = Clock::now();
    for (std::size_t i = 0; i < kPairs; ++i) {
      Armed& one = own[i * 7 % own.size()];
      wheel->add(one);
      wheel->remove(one);
    }
    const double pair = ns_each(Clock::now() - begin, kPairs);
    const auto all = Clock::now();
    for (Armed& one : others) wheel->remove(one);
    fmt::print("arm and disarm beside {:7} armed: {:5.0f} ns{}; disarm those, one after the other: {:.0f} ns each\n",
               armed, pair, pair <= kPairGoalNs ? "" : "  MISSED (200 ns)",
               armed == 0 ? 0 : ns_each(Clock::now() - all, armed));
  }
}

/// A process with a transfer machine that takes messages until it is stopped.
class Peer {
 public:
  explicit Peer(const std::string& path) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::abort();
    process_ = fork();
    if (process_ == 0) live(ends[1], path);
    std::array<char, 64> text{};
    if (recv(ends[0], text.data(), text.size(), MSG_WAITALL) != static_cast<ssize_t>(text.size())) std::abort();
    address_ = text.data();
  }
  ~Peer() { ::kill(process_, SIGKILL), waitpid(process_, nullptr, 0); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  void stop() const {
    int status = 0;
    ::kill(process_, SIGSTOP), waitpid(process_, &status, WUNTRACED);
  }
  const std::string& address() const { return address_; }

  static net::Domain domain(const std::string& path) {
    net::DomainSettings settings;
    settings.engine = {{"path", path}, {"give_up_after", "600000"}};
    return net::Domain::open(settings).value();
  }

 private:
  [[noreturn]] static void live(int socket, const std::string& path) {
    net::Domain own = domain(path);
    net::TransferMachine machine(own);
    const auto end_point = machine.start_and_wait("127.0.0.1@udp:*:34:*").value();
    auto buffer = net::Buffer::allocate(own, 4096).value();
    (void)buffer->set_callback(
        [&](const net::BufferEvent& event) { (void)machine.add(event.buffer, net::MessageReceive{}); });
    (void)machine.add(*buffer, net::MessageReceive{});
    std::array<char, 64> text{};
    std::string(end_point.address()).copy(text.data(), text.size() - 1);
    (void)send(socket, text.data(), text.size(), 0);
    for (;;) pause();
  }

  pid_t process_ = -1;
  std::string address_;
};

/// A machine connected to a peer that is now stopped.
struct Stage {
  explicit Stage(const std::string& path) : peer(path), domain(Peer::domain(path)), machine(domain) {
    (void)machine.start_and_wait("127.0.0.1@udp:*:34:*").value();
    to = machine.create_end_point(peer.address()).value();
    auto first = make(64);
    (void)machine.add(*first, net::MessageSend{.to = to});
    wait_for(1);
    ended.clear();
    peer.stop();
  }
  std::unique_ptr<net::Buffer> make(std::uint64_t size) {
    auto buffer = net::Buffer::allocate(domain, size).value();
    (void)buffer->set_callback([this](const net::BufferEvent& event) {
      const std::scoped_lock lock(mutex);
      ended.emplace_back(event.status, Clock::now());
    });
    return buffer;
  }
  void wait_for(std::size_t count) {
    for (;; std::this_thread::sleep_for(1ms)) {
      const std::scoped_lock lock(mutex);
      if (ended.size() >= count) return;
    }
  }

  Peer peer;
  net::Domain domain;
  net::TransferMachine machine;
  net::EndPoint to;
  std::mutex mutex;
  std::vector<std::pair<Status, Instant>> ended;
};

void measure_cancels(const std::string& path, std::uint64_t size) {
  for (const std::size_t count : {100UL, 4000UL}) {
    Stage stage(path);
    std::vector<std::unique_ptr<net::Buffer>> buffers;
    for (std::size_t i = 0; i < count; ++i) {
      buffers.push_back(stage.make(size));
      if (stage.machine.add(*buffers.back(), net::MessageSend{.to = stage.to}) != Status::ok) break;
    }
    const auto begin = Clock::now();
    for (std::size_t i = buffers.size(); i-- > 0;) stage.machine.cancel(*buffers[i]);
    fmt::print("{:4} cancel, {:6} bytes, {:4} to a peer that stands still: {:5.0f} ns each\n", path, size,
               buffers.size(), ns_each(Clock::now() - begin, buffers.size()));
    stage.wait_for(buffers.size());
  }
}

void measure_stop(const std::string& path, std::uint64_t size) {
  constexpr std::size_t kBuffers = 1000, kStops = 7;
  std::vector<double> took;
  for (std::size_t i = 0; i < kStops; ++i) {
    Stage stage(path);
    std::vector<std::unique_ptr<net::Buffer>> buffers;
    for (std::size_t j = 0; j < kBuffers; ++j) {
      buffers.push_back(stage.make(size));
      if (stage.machine.add(*buffers.back(), net::MessageSend{.to = stage.to}) != Status::ok) std::abort();
    }
    const auto begin = Clock::now();
    if (!stage.machine.stop_and_wait(net::StopMode::abort)) std::abort();
    took.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
    if (stage.ended.size() != kBuffers) std::abort();
  }
  std::ranges::sort(took);
  fmt::print(
      "{:4} stop with {} messages of {:5} bytes to a peer that stands still: median {:.2f} ms, most {:.2f} ms{}\n",
      path, kBuffers, size, took[kStops / 2], took.back(),
      took[kStops / 2] < std::chrono::duration<double, std::milli>(kStopGoal).count() ? "" : "  MISSED (10 ms)");
}

void measure_lateness(const std::string& path, std::uint64_t size) {
  constexpr int kDeadlines = 300;
  Stage stage(path);
  std::vector<Duration> late;
  for (int i = 0; i < kDeadlines; ++i) {
    auto buffer = stage.make(size);
    const Instant deadline = Clock::now() + 3ms;
    if (stage.machine.add(*buffer, net::MessageSend{.to = stage.to, .deadline = deadline}) != Status::ok) std::abort();
    stage.wait_for(1);
    if (stage.ended[0].first != Status::timed_out) std::abort();
    late.push_back(stage.ended[0].second - deadline);
    stage.ended.clear();
  }
  std::ranges::sort(late);
  const auto us = [&](double share) {
    return std::chrono::duration<double, std::micro>(late[static_cast<std::size_t>(share * (kDeadlines - 1))]).count();
  };
  fmt::print(
      "{:4} deadline to event, {:7} bytes to a peer that stands still: median {:.0f} us, p99 {:.0f} us, most {:.0f} "
      "us{}\n",
      path, size, us(0.5), us(0.99), us(1),
      us(0.99) < std::chrono::duration<double, std::micro>(kLatenessGoal).count() ? "" : "  MISSED (2 ms)");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("what deadlines and cancelling cost");
  CLI11_PARSE(app, argc, argv);
  measure_arming();
  for (const std::string path : {"udp", "shm"}) {
    for (const std::uint64_t size : {64, 65'536}) measure_cancels(path, size);
    for (const std::uint64_t size : {64, 1 << 20}) measure_lateness(path, size);
    for (const std::uint64_t size : {64, 4096}) measure_stop(path, size);
  }
}
