// Allocations of the host engine's thread fail while it serves: one at a time, and several in a row. The application
// that caused them may be refused or detached. Other applications are still served, and nothing leaks.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "host/host_core.hpp"
#include "host/hostile_pairs_for_tests.hpp"
#include "host/service.hpp"
#include "tests/environment.hpp"
#include "tests/failing_memory.hpp"

namespace fairlead::host {
namespace {

thread_local bool is_of_host_engine = false;
std::atomic<std::uint64_t> asked{0}, first_failing{0}, last_failing{0};

bool fails_now() {
  if (!is_of_host_engine) return false;
  const std::uint64_t number = ++asked;
  return number >= first_failing && number <= last_failing;
}

class HostWithoutMemory : public ::testing::Test {
 protected:
  HostWithoutMemory() {
    tests::failing_memory = {.is_watched = fails_now, .first = 1, .last = ~0ULL};
    char folder[] = "/tmp/fairlead-host-XXXXXX";
    EXPECT_NE(::mkdtemp(folder), nullptr);
    folder_ = folder;
    ServiceOptions options;
    options.file = file();
    service_ = Service::open(std::move(options)).value();
    thread_ = std::thread([this] {
      is_of_host_engine = true;
      service_->run();
    });
  }
  ~HostWithoutMemory() override {
    service_->stop();
    thread_.join();  // from here on, only this thread uses `failing_memory`
    EXPECT_GT(tests::failing_memory.failed, 0U) << "no allocation has failed";
    tests::failing_memory = {};
    std::filesystem::remove_all(folder_);
  }

  std::string file() const { return folder_ + "/host"; }

  template <typename Run>
  static std::uint64_t with(std::uint64_t first, std::uint64_t count, Run&& run) {
    asked = 0;
    last_failing = first + count - 1;
    first_failing = first;
    run();
    first_failing = ~0ULL;
    return asked;
  }
  /// Repeats `run` and lets allocations of the host engine fail: single ones, of which a full run tests all, and 20 in
  /// a row. Calls `is_well` after each.
  template <typename Run, typename Check>
  void each_fails(std::uint64_t asked_least, Run&& run, Check&& is_well) {
    run();  // once before counting, for allocations that the host engine makes only once
    const std::uint64_t all = with(~0ULL, 1, run);
    ASSERT_GT(all, asked_least);
    for (const std::uint64_t count : {1U, 20U}) {
      for (std::uint64_t first = 1; first <= all; first += count) {
        if (count == 1 && !tests::is_drawn(first, 4)) continue;
        SCOPED_TRACE(testing::Message() << count << " from allocation " << first << " of " << all);
        with(first, count, run);
        is_well();
        if (HasFailure()) return;
      }
    }
  }
  void wait_for_applications(std::size_t count) {
    const auto end = base::MonotonicClock::now() + kPatienceWithPairs;
    while (service_->applications() != count && base::MonotonicClock::now() < end) std::this_thread::yield();
    EXPECT_EQ(service_->applications(), count) << "somebody has not left";
  }

  std::string folder_;
  std::unique_ptr<Service> service_;
  std::thread thread_;
};

/// Creates one or two objects of each kind. Continues when a call fails.
void use_queue_pairs(const std::string& file) {
  constexpr std::uint64_t kPage = 4096;
  HostilePairs one(file);
  one.settle();
  PairCall call = HostilePairs::pair_call();
  for (int i = 0; i < 2; ++i) one.call(CallKind::open_pair, call);
  const PairAnswer pair = one.answer;
  PairCall queue{.domain = 2};
  queue.depth = queue.pieces = 4;
  const bool has_queue = one.call(CallKind::open_queue, queue) == Status::ok;
  queue.object = one.answer.object;
  queue.generation = one.answer.generation;
  queue.depth = 300;
  if (has_queue) one.call(CallKind::change_queue, queue);
  PairCall region{.domain = 3};
  region.length = 2 * kPage;
  const std::initializer_list<MemoryPiece> apart{{0, kPage}, {4 * kPage, kPage}};
  if (one.call(CallKind::add_region, region, apart) == Status::ok) {
    region.key = one.answer.key;
    one.call(CallKind::change_region, region, apart);
  }
  PairCall window{.domain = 4};
  window.type = std::to_underlying(verbs::WindowType::type_2);
  one.call(CallKind::add_window, window);
  call.object = pair.object;
  call.generation = pair.generation;
  one.call(CallKind::close_pair, call);
}

TEST_F(HostWithoutMemory, RefusesWhoeverHasQueuePairsAndNobodyElse) {
  HostilePairs good(file());
  good.settle();
  const PairRequest pair = good.pair_in(verbs::QpState::rts);
  each_fails(
      50,
      [&] {
        try {
          use_queue_pairs(file());
        } catch (const std::bad_expected_access<Error>& refused) {
          EXPECT_TRUE(refused.error().status == Status::no_memory || refused.error().status == Status::restarted)
              << refused.error().message;
        }
      },
      [&] {
        wait_for_applications(1);
        PairCall facts = HostilePairs::pair_call();
        facts.object = pair.object;
        facts.generation = pair.generation;
        ASSERT_EQ(good.call(CallKind::pair_facts, facts), Status::ok);
      });
}

TEST_F(HostWithoutMemory, RefusesWhoeverHasPortsAndNobodyElse) {
  engine::EngineOptions options;
  const auto loopback = base::SocketAddress::from_ip("127.0.0.1", 0).value();
  const auto good = HostCore::attach(file(), loopback, options).value();
  const auto port = good->open_port(7).value();
  std::array<std::byte, 100> bytes{};
  const std::array memory{iovec{bytes.data(), bytes.size()}};
  const auto receives = [&](HostCore& core, engine::PortHandle at) {
    engine::OperationHandle operation;
    return core.reserve_events(at, 1) == Status::ok &&
           core.post_receive(at, {.memory = memory, .size_min = 1}, operation) == Status::ok;
  };
  each_fails(
      10,
      [&] {
        const auto core = HostCore::attach(file(), good->address(), options);
        if (!core) return;
        const auto mine = (*core)->open_port(8);
        (void)(*core)->describe_peer(loopback);
        if (!mine) return;
        engine::OperationHandle operation;
        receives(**core, *mine);
        if ((*core)->reserve_events(*mine, 1) == Status::ok)
          (void)(*core)->send(*mine, {.to = {good->address(), 7}, .part = {memory, 10, 1}}, operation);
        (*core)->close_port(*mine);
      },
      [&] {
        wait_for_applications(1);
        EXPECT_FALSE(good->has_ended());
        const auto again = good->open_port(9);
        ASSERT_TRUE(again) << again.error().message;
        good->close_port(*again);
      });
  good->close_port(port);
}

}  // namespace
}  // namespace fairlead::host
