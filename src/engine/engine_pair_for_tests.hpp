#pragma once
// Two engines on virtual time, with real shared memory between them.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "base/place_for_tests.hpp"
#include "engine/engine.hpp"
#include "onesided/shared_tables.hpp"
#include "path/sim_network.hpp"
#include "shm/transport.hpp"
#include "wire/shm_record.hpp"

namespace fairlead::engine {

using namespace std::chrono_literals;

inline constexpr std::uint32_t kPort = 34U << 12 | 1U;
inline constexpr std::uint64_t kShown = 8U << 20;

inline base::SocketAddress direct_place(std::uint16_t number) {
  return base::place_for_tests(number);
}

inline shm::ConnectionOptions direct_options(bool has_cma = false) {
  return {.ring_bytes = 64 * 1024,
          .arena_bytes = sizeof(onesided::SharedTables) + kShown,
          .arena_head_bytes = sizeof(onesided::SharedTables),
          .identity_bytes = has_cma ? sizeof(onesided::OwnedRecords) : 0,
          .has_traced = has_cma};
}

/// Options whose range of ports contains the test addresses, with few arrivals of active messages. `has_cma` also
/// enables cross-memory attach, for polling peers up to `awake_max` bytes.
inline EngineOptions direct_engine_options(bool has_cma, std::uint64_t awake_max = onesided::kCarriedOutMax) {
  EngineOptions options;
  EXPECT_TRUE(options.set(Option::port_first, 40000));
  EXPECT_TRUE(options.set(Option::active_messages_max, 128));
  const std::uint64_t most = has_cma ? onesided::kCarriedOutMax : 0;
  EXPECT_TRUE(options.set(Option::shm_cma_max, most) &&
              options.set(Option::shm_cma_awake_max, std::min(most, awake_max)));
  return options;
}

struct DirectSide {
  /// Wraps the engine's path, if set.
  using Wrap = std::function<std::unique_ptr<path::Path>(std::unique_ptr<path::Path>)>;

  DirectSide(path::SimNetwork& network, std::uint16_t number, bool has_cma,
             std::uint64_t awake_max = onesided::kCarriedOutMax, const Wrap& wrap = {}) {
    auto connections = shm::Connections::open(direct_place(number), number + 100U, direct_options(has_cma)).value();
    auto shm = std::make_unique<shm::Transport>(
        std::move(connections), shm::TransportOptions{.give_up_after = 5s,
                                                      .connect_within = 1s,
                                                      .pull_min = 1,
                                                      .pull_max = has_cma ? onesided::kCarriedOutMax : 0});
    std::unique_ptr<path::Path> path = *network.attach(direct_place(number));
    if (wrap) path = wrap(std::move(path));
    engine = std::make_unique<Engine>(std::move(path), direct_place(number), direct_engine_options(has_cma, awake_max),
                                      number + 100U, number, std::move(shm));
    port = *engine->ports().open(kPort);
    EXPECT_EQ(engine->ports().find(port)->events->reserve(100'000), Status::ok);
  }
  std::span<std::byte> shared(std::uint64_t bytes) {
    return engine->connections()->remapped().allocate(bytes).first(bytes);
  }
  std::optional<Completion> event() {
    const Completion* next = engine->ports().find(port)->events->consume();
    return next == nullptr ? std::nullopt : std::optional(*next);
  }
  std::uint64_t counter(std::string_view name) const {
    for (const observe::CounterFact& fact : engine->facts().counters)
      if (fact.name == name) return fact.value;
    ADD_FAILURE() << "no counter " << name;
    return 0;
  }
  onesided::SharedTables& tables() {
    return *reinterpret_cast<onesided::SharedTables*>(engine->connections()->arena()->head());
  }

  std::unique_ptr<Engine> engine;
  PortHandle port;
};

/// A fixture in which the near engine has met the far one, and each maps the other's shared memory.
class EnginePair : public testing::Test {
 protected:
  explicit EnginePair(bool has_cma = false, std::uint64_t awake_max = onesided::kCarriedOutMax)
      : far_(network_, 2, has_cma, awake_max), near_(network_, 1, has_cma, awake_max) {}
  void SetUp() override {
    ASSERT_TRUE(near_.engine->connections()->ask(direct_place(2), {}));
    const auto has_met = [](DirectSide& side) { return side.engine->connections()->counters().arenas_seen == 1; };
    for (int step = 0; step < 10'000 && !(has_met(near_) && has_met(far_)); ++step) pass();
    ASSERT_TRUE(has_met(near_) && has_met(far_));
    for (int step = 0; step < 10; ++step) pass();
  }
  void pass(bool is_far_running = true) {
    now_ += 25us;
    near_.engine->progress(now_);
    if (is_far_running) far_.engine->progress(now_);
  }
  /// Publishes a record as a malicious peer might.
  static void publish_record(shm::Connection& to, const wire::Envelope& envelope) {
    const std::size_t bytes = wire::shm_head_bytes(wire::ShmKind::whole);
    std::byte* const body = to.writer.reserve(bytes);
    ASSERT_NE(body, nullptr);
    wire::encode_shm(body, wire::ShmKind::whole, envelope, 0);
    to.writer.publish(bytes, to.reader.read());
  }
  /// Writes a record and rings; then both engines make a pass.
  void write_record(shm::Connection& to, const wire::Envelope& envelope) {
    publish_record(to, envelope);
    to.alert();
    pass();
    to.writer.look();
  }
  /// Makes passes until the side has an event.
  std::optional<Completion> next(DirectSide& side) {
    for (int step = 0; step < 10'000; ++step) {
      if (auto event = side.event()) return event;
      pass();
    }
    return std::nullopt;
  }
  path::SimNetwork network_{1};
  base::Instant now_{1s};
  DirectSide far_;
  DirectSide near_;
};

}  // namespace fairlead::engine
