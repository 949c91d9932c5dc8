// An engine's statistics, read by other processes: exact while it lives, and without cost while nobody reads them.

#include <gmock/gmock.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/place_for_tests.hpp"
#include "embedded/attach.hpp"
#include "embedded/driver.hpp"
#include "observe/stats_finder.hpp"

namespace fairlead::embedded {
namespace {

using namespace std::chrono_literals;
using observe::text_of;

constexpr auto kPatienceOfStats = 30s;  // only a failing test takes so long
base::Instant patience() {
  return base::MonotonicClock::now() + kPatienceOfStats;
}
constexpr std::uint32_t kPortOfStats = 34U << 12U | 1U;

struct Shown {
  explicit Shown(std::uint16_t number) {
    engine::EngineOptions options;
    EXPECT_TRUE(options.set("path", "udp"));
    core = attach_embedded(base::place_for_tests(number), options).value();
    port = *core->open_port(kPortOfStats);
    EXPECT_EQ(core->reserve_events(port, 100), Status::ok);
  }
  ~Shown() { core->close_port(port); }
  Shown(const Shown&) = delete;
  Shown& operator=(const Shown&) = delete;

  void post() {
    engine::OperationHandle name;
    EXPECT_EQ(core->post_receive(port, {.memory = {&piece, 1}, .size_min = 1}, name), Status::ok);
  }
  void send(const Shown& to) {
    engine::OperationHandle name;
    const engine::RemotePort there{to.core->address(), kPortOfStats};
    EXPECT_EQ(core->send(port, {.to = there, .part = {{&piece, 1}, 8}}, name), Status::ok);
  }
  void await_event() { EXPECT_TRUE(core->wait(port, patience()) && core->next_event(port, last)); }
  void exchange(Shown& with, int count) {
    for (int i = 0; i < count; ++i) {
      with.post();
      send(with);
      with.await_event();
      await_event();
    }
  }

  std::shared_ptr<engine::Core> core;
  engine::PortHandle port;
  std::array<std::byte, 8> bytes{};
  iovec piece{bytes.data(), bytes.size()};
  engine::Completion last;
};

/// Returns the threads of this process.
std::set<std::string> all_threads() {
  std::set<std::string> threads;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) threads.insert(task.path());
  return threads;
}

class EngineStats : public testing::Test {
 protected:
  /// Returns how often each thread of the engines has gone to sleep.
  std::map<std::string, std::string> sleeps() const {
    std::map<std::string, std::string> all;
    for (const std::string& task : all_threads()) {
      if (threads_before_.contains(task)) continue;
      std::ifstream status(task + "/status");
      for (std::string line; std::getline(status, line);)
        if (line.starts_with("voluntary_ctxt_switches")) all[task] = line;
    }
    return all;
  }
  observe::FoundStats& page_of(const Shown& one) {
    found_ = observe::find_stats(::getpid());
    for (observe::FoundStats& each : found_)
      if (text_of(each.read(patience())->header.address) == one.core->address().to_string()) return each;
    throw std::runtime_error("no page");
  }
  observe::StatsView ask(const Shown& one, bool wants_flights = false) {
    const auto answers = observe::ask_stats(std::span(&page_of(one), 1), wants_flights, kPatienceOfStats);
    EXPECT_TRUE(answers[0].is_fresh);
    return answers[0].view.value();
  }

  const std::set<std::string> threads_before_ = all_threads();
  std::vector<observe::FoundStats> found_;
  Shown near_{1}, far_{2};
};

TEST_F(EngineStats, AreExact) {
  near_.exchange(far_, 10);
  far_.post();
  const observe::StatsView near = ask(near_), far = ask(far_);
  EXPECT_EQ(near.counter("engine.messages_sent"), 10u);
  EXPECT_EQ(near.counter("link.messages_ok"), 10u);
  EXPECT_EQ(far.counter("engine.messages_received"), 10u);
  EXPECT_EQ(near.counters.size(), near_.core->facts().counters.size());
  ASSERT_EQ(near.peers.size(), 1u);
  EXPECT_EQ(text_of(near.peers[0].address), far_.core->address().to_string());
  EXPECT_EQ(text_of(near.peers[0].path), "udp");
  EXPECT_EQ(near.peers[0].is_connected, 1u);
  ASSERT_EQ(far.ports.size(), 1u);
  EXPECT_EQ(far.ports[0].number, kPortOfStats);
  EXPECT_EQ(far.ports[0].operations, 1u);
}

std::uint32_t total_of(const observe::StatsView& view, observe::StatsPart part) {
  return view.header.parts[static_cast<std::size_t>(part)].total;
}

TEST_F(EngineStats, CountWhatThereIsNoRoomFor) {
  near_.exchange(far_, 1);
  std::vector<engine::PortHandle> ports;
  for (std::uint32_t i = 0; i < 1100; ++i) ports.push_back(near_.core->open_port(kPortOfStats + 1 + i).value());
  const observe::StatsView near = ask(near_);
  EXPECT_EQ(near.ports.size(), 1024u);
  EXPECT_EQ(total_of(near, observe::StatsPart::ports), 1101u);
  EXPECT_EQ(total_of(near, observe::StatsPart::peers), 1u);
  for (const engine::PortHandle port : ports) near_.core->close_port(port);
}

// Each answer holds the engine's lock, so a reader that asks in a loop has to wait.
TEST_F(EngineStats, AreCopiedSoOftenAtMost) {
  const auto begin = base::MonotonicClock::now();
  const std::uint64_t before = ask(near_).header.publications;
  std::uint64_t after = before;
  for (int i = 0; i < 30; ++i) after = ask(near_).header.publications;
  const auto most = (base::MonotonicClock::now() - begin) / Driver::kAnswerEvery + 1;
  EXPECT_LE(after - before, static_cast<std::uint64_t>(most));
}

TEST_F(EngineStats, TellTheFlightsIfTheyAreAskedFor) {
  near_.exchange(far_, 1);
  EXPECT_TRUE(ask(near_).flights.empty());
  const observe::StatsView near = ask(near_, true);
  ASSERT_EQ(near.flights.size(), 1u);
  EXPECT_EQ(text_of(near.flights[0].peer), far_.core->address().to_string());
  EXPECT_GT(near.flights[0].recorded, 3u);
  ASSERT_FALSE(near.events.empty());
  EXPECT_EQ(near.events[0].to_string(), "submitted 1 messages, 8 bytes");
}

TEST_F(EngineStats, AreAnsweredWhileSomebodyPolls) {
  std::jthread poller([&](const std::stop_token& end) {
    while (!end.stop_requested()) near_.core->progress();
  });
  for (int i = 0; i < 20; ++i) EXPECT_GT(ask(near_).header.publications, 0u);
}

// Another process of this host may ask all engines at the same time, so there are several attempts.
TEST_F(EngineStats, AreCopiedForNobody) {
  const auto publications = [&] { return page_of(near_).read(patience())->header.publications; };
  bool is_left_alone = false;
  for (int i = 0; i < 20 && !is_left_alone; ++i) {
    const std::uint64_t before = publications();
    near_.exchange(far_, 100);
    is_left_alone = publications() == before;
  }
  EXPECT_TRUE(is_left_alone) << "who wants them?";
}

TEST_F(EngineStats, LetAnIdleEngineSleep) {
  auto before = sleeps();
  EXPECT_EQ(before.size(), 2u) << "a thread of each engine";
  bool is_idle = false;
  for (int i = 0; i < 100 && !is_idle; ++i) {
    std::this_thread::sleep_for(300ms);
    const auto after = sleeps();
    is_idle = std::exchange(before, after) == after;
  }
  EXPECT_TRUE(is_idle) << "something wakes its thread again and again";
  ask(near_);
  for (int i = 0; i < 10'000 && sleeps() == before; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_NE(sleeps(), before) << "it was asked, so it woke";
}

}  // namespace
}  // namespace fairlead::embedded
