// Cost of a message by the number of its sender's destinations: one thread sends 8 B to 1, 2, 8 and 64 engines of
// another process in turn, through shared memory. That process polls all of them from one thread, so each destination
// costs the sender what a receiver on a processor of its own does. The rows take turns, because processors drift. To
// count the misses of the sends:
//
//   valgrind --tool=callgrind --cache-sim=yes --collect-atstart=no '--toggle-collect=*measured_fan*' \
//       BENCH --turns 1 --rounds 200 --only 64

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>

#include <CLI/CLI.hpp>

#include "bench/net_end.hpp"

namespace {

using namespace fairlead;
using bench::give_up, bench::NetEnd, bench::take, bench::want;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kReceivers = 64, kInRound = 64;
constexpr std::uint64_t kBytes = 8;
using Address = std::array<char, 64>;
using Nanoseconds = std::chrono::duration<double, std::nano>;

net::Domain open_domain() {
  return take(net::Domain::open({.engine = {{"path", "shm"}}}));
}

void run_on(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0) give_up("it needs two processors");
}

/// The receivers' process: tells their addresses and polls, until it is killed.
[[noreturn]] void receive(int to_sender) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  run_on(1);
  net::Domain domain = open_domain();
  std::vector<std::unique_ptr<NetEnd>> ends;
  for (std::size_t i = 0; i < kReceivers; ++i) {
    ends.push_back(std::make_unique<NetEnd>(domain, fmt::format("127.0.0.{}", i + 2), 1, kBytes));
    Address address{};
    ends.back()->own.address().copy(address.data(), address.size() - 1);
    if (::write(to_sender, &address, sizeof address) != sizeof address) give_up("the sender is gone");
  }
  for (;;)
    for (const auto& end : ends) end->machine.deliver_all();
}

// Not inlined: callgrind counts this function by name.
[[gnu::noinline]] void measured_fan(NetEnd& from, const std::vector<net::EndPoint>& to, std::size_t destinations) {
  for (std::size_t i = 0; i < kInRound; ++i) from.send(to[i % destinations], kBytes);
}

class Sender {
 public:
  explicit Sender(int from_receivers) : end_(domain_, "127.0.0.1", kInRound, kBytes) {
    for (std::size_t i = 0; i < kReceivers; ++i) {
      Address address{};
      if (::read(from_receivers, &address, sizeof address) != sizeof address) give_up("the receivers are gone");
      to_.push_back(take(end_.machine.create_end_point(address.data())));
    }
  }
  /// Sends a round of messages and waits until all have arrived. Returns the time of the sends.
  Clock::duration round(std::size_t destinations) {
    const auto start = Clock::now();
    measured_fan(end_, to_, destinations);
    const auto sent = Clock::now();
    while (end_.idle.size() < kInRound) end_.machine.deliver_all();
    return sent - start;
  }

 private:
  net::Domain domain_ = open_domain();
  NetEnd end_;
  std::vector<net::EndPoint> to_;
};

struct Row {
  std::size_t destinations = 0;
  std::vector<double> times = {}, ratios = {};  // of each turn
};

template <typename T>
T median_of(std::vector<T> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("one message to each of 1, 2, 8 and 64 engines of another process in turn, through shared memory");
  int turns = 15, rounds = 2000;
  std::size_t only = 0;
  app.add_option("--turns", turns, "how often the rows are measured, in turns")->check(CLI::PositiveNumber);
  app.add_option("--rounds", rounds, "rounds of 64 messages in each of them")->check(CLI::PositiveNumber);
  app.add_option("--only", only, "so many destinations only")->check(CLI::Range(std::size_t{1}, kReceivers));
  CLI11_PARSE(app, argc, argv);
  int ends[2] = {-1, -1};
  if (::pipe(ends) != 0) give_up("no pipe");
  const pid_t receivers = ::fork();
  if (receivers < 0) give_up("no second process");
  if (receivers == 0) receive(ends[1]);
  ::close(ends[1]);
  run_on(0);
  Sender sender(ends[0]);
  std::vector<Row> rows;
  for (const std::size_t destinations : {1, 2, 8, 64})
    if (only == 0 || only == destinations) rows.push_back({.destinations = destinations});
  for (int turn = 0; turn < turns; ++turn) {
    for (Row& row : rows) {
      std::vector<Clock::duration> took;
      for (int i = 0; i < rounds; ++i) took.push_back(sender.round(row.destinations));
      row.times.push_back(Nanoseconds(median_of(took)).count() / kInRound);
      row.ratios.push_back(row.times.back() / rows[0].times.back());
    }
  }
  for (const Row& row : rows) {
    fmt::print("to {:2}: {:6.1f} ns a message (best {:.1f}, worst {:.1f}), {:.2f} times the first row's\n",
               row.destinations, median_of(row.times), std::ranges::min(row.times), std::ranges::max(row.times),
               median_of(row.ratios));
  }
  ::kill(receivers, SIGKILL);
  return 0;
}
