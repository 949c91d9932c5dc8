// Two engines whose paths inject faults: every message still arrives, once and intact. next_deadline() includes the
// datagrams that the path delays.

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "path/faulty_path.hpp"
#include "path/sim_network.hpp"

namespace fairlead::engine {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kNumber = 34U << 12 | 1U;
constexpr std::uint32_t kMessages = 400;
constexpr std::uint32_t kSize = 3000;

base::SocketAddress host(const char* ip) {
  return *base::SocketAddress::from_ip(ip, 20480);
}

struct FaultySide {
  FaultySide(path::SimNetwork& network, const char* ip, const char* plan, std::uint64_t epoch) {
    auto path = std::make_unique<path::FaultyPath>(*network.attach(host(ip)), *path::FaultPlan::parse(plan));
    engine = std::make_unique<Engine>(std::move(path), host(ip), EngineOptions(), epoch, epoch);
    port = *engine->ports().open(kNumber);
    EXPECT_EQ(engine->ports().find(port)->events->reserve(2 * kMessages), Status::ok);
  }

  std::uint64_t counter(std::string_view name) const {
    for (const observe::CounterFact& fact : engine->facts().counters) {
      if (fact.name == name) return fact.value;
    }
    ADD_FAILURE() << "no counter " << name;
    return 0;
  }

  std::unique_ptr<Engine> engine;
  PortHandle port;
};

class EngineFaults : public testing::TestWithParam<const char*> {};

TEST_P(EngineFaults, EveryMessageArrivesOnceAndIntact) {
  path::SimNetwork network(1);
  network.set_default_link({.delay = 5us});
  const std::string plan = GetParam();
  FaultySide sender(network, "10.0.0.1", (plan + ",seed=1").c_str(), 11);
  FaultySide receiver(network, "10.0.0.2", (plan + ",seed=2").c_str(), 12);
  base::Instant now{1s};

  std::vector<std::byte> source(std::size_t{kMessages} * kSize), target(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>((i * 131) >> 5);
  std::vector<iovec> from(kMessages);
  const iovec into{target.data(), target.size()};
  OperationHandle operation;
  ASSERT_EQ(receiver.engine->messages().post_receive(
                receiver.port, {.memory = {&into, 1}, .size_min = kSize, .messages_max = kMessages}, operation),
            Status::ok);
  std::uint32_t submitted = 0, sent = 0;
  std::map<std::uint64_t, std::uint64_t> arrived;  // offset, length
  for (int step = 0; step < 2'000'000 && (sent < kMessages || arrived.size() < kMessages); ++step) {
    while (submitted < kMessages) {
      from[submitted] = {source.data() + std::size_t{submitted} * kSize, kSize};
      const Send send{.to = {host("10.0.0.2"), kNumber}, .part = {{&from[submitted], 1}, kSize, 1}};
      if (sender.engine->messages().send(sender.port, send, operation, now) != Status::ok) break;
      ++submitted;
    }
    bool any = false;
    for (const FaultySide* side : {&sender, &receiver}) any |= side->engine->progress(now);
    while (const Completion* event = sender.engine->ports().find(sender.port)->events->consume()) {
      ASSERT_EQ(event->status, Status::ok);
      ++sent;
    }
    while (const Completion* event = receiver.engine->ports().find(receiver.port)->events->consume()) {
      ASSERT_EQ(event->status, Status::ok);
      ASSERT_TRUE(arrived.emplace(event->offset, event->length).second);
    }
    if (any) continue;
    const base::Instant next =
        std::min({network.next_event(), sender.engine->next_deadline(), receiver.engine->next_deadline()});
    ASSERT_NE(next, base::kNever) << submitted << " submitted, " << sent << " sent, " << arrived.size() << " arrived";
    now = std::max(next, now);
    network.advance(now);
  }
  ASSERT_EQ(sent, kMessages);
  ASSERT_EQ(arrived.size(), kMessages);

  // Messages are not ordered. Each one that arrived was sent, and none arrived twice.
  const auto text_at = [](const std::vector<std::byte>& bytes, std::uint64_t offset) {
    return std::string(reinterpret_cast<const char*>(bytes.data()) + offset, kSize);
  };
  std::multiset<std::string> wanted, found;
  for (std::uint64_t at = 0; at < source.size(); at += kSize) wanted.insert(text_at(source, at));
  for (const auto& [offset, length] : arrived) {
    ASSERT_EQ(length, kSize);
    found.insert(text_at(target, offset));
  }
  EXPECT_TRUE(found == wanted);
  EXPECT_GT(sender.counter("path.fault.offered"), kMessages);
  EXPECT_EQ(sender.engine->facts().path, "sim+faulty");
}

INSTANTIATE_TEST_SUITE_P(Plans, EngineFaults,
                         testing::Values("drop=1%", "drop=5%,burst=40", "reorder=5:64", "reorder=100%:1:20",
                                         "duplicate=50%", "corrupt=5%", "delay=1ms", "delay=200us,jitter=2ms",
                                         "drop=1%,reorder=5:64,duplicate=1%,delay=1ms,corrupt=0.1%"));

}  // namespace
}  // namespace fairlead::engine
