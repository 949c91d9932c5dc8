// Speed of the event queue and its competitors: records per second through one queue, and round trip over two, between
// threads and between processes that map the memory at different addresses. All contenders run in each round, and the
// medians are compared. The hypervisor may move the cores, so compare a figure only with others of its round and with
// the canary (observe/canary.hpp).

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/affinity.hpp"
#include "base/processor.hpp"
#include "base/time.hpp"
#include "bench/queue_contenders.hpp"
#include "observe/canary.hpp"
#include "queue/shared_segment.hpp"

namespace fairlead::bench {
namespace {

enum class Mode { threads, processes };

struct Sizes {
  int rounds = 11;
  std::uint64_t records = 2'000'000;
  std::uint64_t exchanges = 20'000;
};

// Shared state of the two sides beside the queues.
struct Meeting {
  std::atomic<std::uint32_t> arrived{0};
  std::atomic<std::int64_t> elapsed_ns{0};

  void meet(std::uint32_t everybody) {
    arrived.fetch_add(1, std::memory_order_acq_rel);
    while (arrived.load(std::memory_order_acquire) < everybody) std::this_thread::yield();
  }
};

constexpr std::size_t kMeetingBytes = 256;

std::size_t in_lines(std::size_t bytes) {
  return (bytes + 127) / 128 * 128;
}

template <typename Sender>
void send_all(Sender& sender, std::uint64_t first, std::uint64_t records) {
  for (std::uint64_t n = first; n != first + records;) {
    const auto sent =
        sender.send(n, static_cast<std::uint32_t>(std::min<std::uint64_t>(first + records - n, 1U << 30)));
    if (sent == 0) base::relax();
    n += sent;
  }
}

template <typename Receiver>
void receive_all(Receiver& receiver, std::uint64_t first, std::uint64_t records) {
  for (std::uint64_t n = first; n != first + records;) {
    const auto taken =
        receiver.receive(n, static_cast<std::uint32_t>(std::min<std::uint64_t>(first + records - n, 1U << 30)));
    if (taken == 0) base::relax();
    n += taken;
  }
}

// Runs left(memory) here and right(memory) in a second thread or process, each pinned to a processor.
template <typename Left, typename Right>
void run_both(Mode mode, queue::SharedSegment& memory, Left left, Right right) {
  if (mode == Mode::threads) {
    std::jthread other([&] {
      base::pin_to_cpu(1);
      right(memory.span().data());
    });
    left(memory.span().data());
    return;
  }
  const pid_t child = fork();
  ENSURE(child >= 0, "fork failed: {}", errno);
  if (child == 0) {
    base::pin_to_cpu(1);
    right(queue::SharedSegment::map(memory.descriptor()).value().span().data());
    _exit(0);
  }
  left(memory.span().data());
  int outcome = 0;
  waitpid(child, &outcome, 0);
  ENSURE(outcome == 0, "the second process ended with {}", outcome);
}

// Million records per second.
template <typename Queue>
double rate(Mode mode, const Sizes& sizes) {
  auto memory = queue::SharedSegment::create(kMeetingBytes + Queue::bytes()).value();
  auto* meeting = new (memory.span().data()) Meeting;
  Queue::make(memory.span().data() + kMeetingBytes);
  const auto warm_up = sizes.records / 10;
  run_both(
      mode, memory,
      [&](std::byte* base) {
        auto& here = *reinterpret_cast<Meeting*>(base);
        typename Queue::Receiver receiver(base + kMeetingBytes);
        here.meet(2);
        receive_all(receiver, 0, warm_up);
        const auto start = base::MonotonicClock::now();
        receive_all(receiver, warm_up, sizes.records);
        here.elapsed_ns = (base::MonotonicClock::now() - start).count();
        here.meet(4);
      },
      [&](std::byte* base) {
        auto& here = *reinterpret_cast<Meeting*>(base);
        here.meet(2);
        typename Queue::Sender sender(base + kMeetingBytes);
        send_all(sender, 0, warm_up + sizes.records);
        here.meet(4);
      });
  Queue::end(memory.span().data() + kMeetingBytes);
  return static_cast<double>(sizes.records) * 1e3 / static_cast<double>(meeting->elapsed_ns);
}

// Nanoseconds per round trip over two queues.
template <typename Queue>
double round_trip(Mode mode, const Sizes& sizes) {
  const auto back_at = kMeetingBytes + in_lines(Queue::bytes());
  auto memory = queue::SharedSegment::create(back_at + Queue::bytes()).value();
  auto* meeting = new (memory.span().data()) Meeting;
  Queue::make(memory.span().data() + kMeetingBytes);
  Queue::make(memory.span().data() + back_at);
  run_both(
      mode, memory,
      [&](std::byte* base) {
        auto& here = *reinterpret_cast<Meeting*>(base);
        typename Queue::Receiver receiver(base + back_at);
        here.meet(2);
        typename Queue::Sender sender(base + kMeetingBytes);
        auto start = base::MonotonicClock::now();
        for (std::uint64_t n = 0; n != sizes.exchanges * 11 / 10; ++n) {
          if (n == sizes.exchanges / 10) start = base::MonotonicClock::now();
          send_all(sender, n, 1);
          receive_all(receiver, n, 1);
        }
        here.elapsed_ns = (base::MonotonicClock::now() - start).count();
        here.meet(4);
      },
      [&](std::byte* base) {
        auto& here = *reinterpret_cast<Meeting*>(base);
        typename Queue::Receiver receiver(base + kMeetingBytes);
        here.meet(2);
        typename Queue::Sender sender(base + back_at);
        for (std::uint64_t n = 0; n != sizes.exchanges * 11 / 10; ++n) {
          receive_all(receiver, n, 1);
          send_all(sender, n, 1);
        }
        here.meet(4);
      });
  Queue::end(memory.span().data() + kMeetingBytes);
  Queue::end(memory.span().data() + back_at);
  return static_cast<double>(meeting->elapsed_ns) / static_cast<double>(sizes.exchanges);
}

// The floor: no queue, but one cache line that carries the record in both directions (as much as fits beside its word).
template <std::size_t Bytes>
double exchange_line(Mode mode, const Sizes& sizes) {
  struct Line {
    alignas(128) std::atomic<std::uint64_t> turn{0};
    std::array<std::uint64_t, Bytes / 8> words{};
  };
  auto memory = queue::SharedSegment::create(kMeetingBytes + sizeof(Line)).value();
  auto* meeting = new (memory.span().data()) Meeting;
  new (memory.span().data() + kMeetingBytes) Line;
  auto play = [&](std::byte* base, std::uint64_t own_turn) {
    auto& here = *reinterpret_cast<Meeting*>(base);
    auto& line = *reinterpret_cast<Line*>(base + kMeetingBytes);
    here.meet(2);
    auto start = base::MonotonicClock::now();
    for (std::uint64_t n = own_turn; n < 2 * sizes.exchanges * 11 / 10; n += 2) {
      if (n - own_turn == 2 * (sizes.exchanges / 10)) start = base::MonotonicClock::now();
      while (line.turn.load(std::memory_order_acquire) != n) base::relax();
      line.words.fill(n);
      line.turn.store(n + 1, std::memory_order_release);
    }
    if (own_turn == 0) here.elapsed_ns = (base::MonotonicClock::now() - start).count();
    here.meet(4);
  };
  run_both(mode, memory, [&](std::byte* base) { play(base, 0); }, [&](std::byte* base) { play(base, 1); });
  return static_cast<double>(meeting->elapsed_ns) / static_cast<double>(sizes.exchanges);
}

template <std::size_t Bytes>
double line_rate(Mode mode, const Sizes& sizes) {
  return 1e3 / exchange_line<Bytes>(mode, sizes);
}

double median(std::vector<double> figures) {
  std::nth_element(figures.begin(), figures.begin() + figures.size() / 2, figures.end());
  return figures[figures.size() / 2];
}

struct Row {
  std::string queue;
  Mode mode;
  std::size_t payload;
  double (*rate)(Mode, const Sizes&);
  double (*round_trip)(Mode, const Sizes&);
  std::vector<double> rates, round_trips, canaries;

  void measure(const Sizes& sizes) {
    canaries.push_back(static_cast<double>(observe::line_transfer_time(0, 1).count()));
    rates.push_back(rate(mode, sizes));
    round_trips.push_back(round_trip(mode, sizes));
  }
};

template <typename Queue>
void add_row(std::vector<Row>& rows, std::string queue, Mode mode, std::size_t payload) {
  if (mode == Mode::processes && !Queue::kCrosses) return;
  rows.push_back({std::move(queue), mode, payload, rate<Queue>, round_trip<Queue>, {}, {}, {}});
}

template <std::size_t Bytes>
void add_rows(std::vector<Row>& rows, Mode mode) {
  add_row<EventQueue<Bytes, 1>>(rows, "fairlead", mode, Bytes);
  add_row<EventQueue<Bytes, 32>>(rows, "fairlead batch 32", mode, Bytes);
  add_row<BoostQueue<Bytes, 1>>(rows, "boost spsc_queue", mode, Bytes);
  add_row<BoostQueue<Bytes, 32>>(rows, "boost spsc_queue batch 32", mode, Bytes);
  add_row<CkRing<Bytes>>(rows, "ck_ring", mode, Bytes);
  add_row<Moodycamel<Bytes>>(rows, "moodycamel", mode, Bytes);
  rows.push_back({"floor: one line", mode, Bytes, line_rate<Bytes>, exchange_line<Bytes>, {}, {}, {}});
}

void print(const Row& row, bool as_json) {
  const auto* mode = row.mode == Mode::threads ? "threads" : "processes";
  const double mops = median(row.rates), rtt_ns = median(row.round_trips), canary_ns = median(row.canaries);
  if (as_json) {
    const nlohmann::ordered_json line{{"queue", row.queue}, {"mode", mode},     {"payload", row.payload},
                                      {"mops", mops},       {"rtt_ns", rtt_ns}, {"canary_ns", canary_ns}};
    fmt::print("{}\n", line.dump());
  } else {
    fmt::print("{:<27}{:<11}{:>7}{:>10.1f}{:>9.1f}{:>11.0f}\n", row.queue, mode, row.payload, mops, rtt_ns, canary_ns);
  }
}

}  // namespace
}  // namespace fairlead::bench

int main(int argc, char** argv) {
  using namespace fairlead;
  using namespace fairlead::bench;
  Sizes sizes;
  bool as_json = false;
  std::string only;
  CLI::App app{"The event queue beside its rivals: records per second and round trip, between two cores."};
  app.add_flag("--json", as_json, "one JSON object per row");
  app.add_option("--rounds", sizes.rounds, "interleaved rounds, of which the medians are printed")
      ->check(CLI::Range(1, 1000));
  app.add_option("--records", sizes.records, "records per round")->check(CLI::Range(1000, 1'000'000'000));
  app.add_option("--queue", only, "only the queues whose name contains this");
  CLI11_PARSE(app, argc, argv);
  if (!base::pin_to_cpu(1) || !base::pin_to_cpu(0)) {
    fmt::print(stderr, "queue_bench: cannot pin to processors 0 and 1: allow both (taskset, cpuset), two are needed\n");
    return 2;
  }

  std::vector<Row> rows;
  for (const auto mode : {Mode::threads, Mode::processes}) {
    add_rows<8>(rows, mode);
    add_rows<64>(rows, mode);
  }
  std::erase_if(rows, [&](const Row& row) { return !row.queue.contains(only); });
  for (int round = 0; round < sizes.rounds; ++round) {
    for (auto& row : rows) row.measure(sizes);
  }
  if (!as_json) {
    fmt::print("{:<27}{:<11}{:>7}{:>10}{:>9}{:>11}\n", "queue", "mode", "payload", "mops", "rtt_ns", "canary_ns");
  }
  for (const auto& row : rows) print(row, as_json);
}
