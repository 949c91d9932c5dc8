// A stranger on the network (stranger.hpp) against the bulk transfers of a whole engine with its socket, while somebody
// decent uses it. Each attack is one that worked.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "embedded/attach.hpp"
#include "engine/core.hpp"
#include "engine/engine_options.hpp"
#include "tests/stranger.hpp"

namespace fairlead::tests {
namespace {

using wire::Operation;

constexpr std::uint32_t kPort = 1;
constexpr auto kPatience = std::chrono::seconds(30);

/// An engine with a port.
struct Node {
  explicit Node(const std::string& ip) {
    engine::EngineOptions options;
    EXPECT_TRUE(options.set("path", "udp"));
    auto attached = embedded::attach_embedded(*base::SocketAddress::from_ip(ip, 0), options);
    EXPECT_TRUE(attached) << attached.error().message;
    core = std::move(*attached);
    port = *core->open_port(kPort);
    EXPECT_EQ(core->reserve_events(port, 10'000), Status::ok);
  }
  ~Node() { core->close_port(port); }
  std::uint64_t counter(const std::string& name) const {
    for (const observe::CounterFact& fact : core->facts().counters)
      if (fact.name == name) return fact.value;
    ADD_FAILURE() << "no counter " << name;
    return 0;
  }
  std::optional<engine::Completion> next() const {
    engine::Completion completion;
    core->wait(port, base::MonotonicClock::now() + kPatience);
    return core->next_event(port, completion) ? std::optional(completion) : std::nullopt;
  }

  std::shared_ptr<engine::Core> core;
  engine::PortHandle port;
};

class AttackedEngine : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(stranger_.open_session()); }

  /// A put or a get of the decent one, that has to end well.
  void expect_a_transfer_ends_well(bool is_put) {
    std::vector<std::byte> here(1000, std::byte{1}), there(1000, std::byte{2});
    const iovec from{here.data(), here.size()}, to{there.data(), there.size()};
    engine::OperationHandle name;
    std::uint64_t key = 0;
    ASSERT_EQ(
        victim_.core->expose(victim_.port, {.memory = {&to, 1}, .length = 1000, .is_writable = is_put}, name, key),
        Status::ok);
    const engine::Transfer transfer{.target = {victim_.core->address(), kPort},
                                    .target_epoch = victim_.core->epoch(),
                                    .key = key,
                                    .memory = {&from, 1},
                                    .length = 1000};
    ASSERT_EQ(
        is_put ? decent_.core->put(decent_.port, transfer, name) : decent_.core->get(decent_.port, transfer, name),
        Status::ok);
    for (const Node* node : {&decent_, &victim_}) {
      const auto end = node->next();
      ASSERT_TRUE(end.has_value()) << (node == &decent_ ? "the initiator" : "the owner") << " hears nothing";
      EXPECT_EQ(end->status, Status::ok);
    }
    EXPECT_EQ(here, there);
  }

  Node victim_{"127.0.0.1"}, decent_{"127.0.0.2"};
  Stranger stranger_{victim_.core->address()};
};

// Each request has to be answered, and the answers find no room: those to others do not wait behind them, none of them
// is thrown away, and there is an end to it.
TEST_F(AttackedEngine, AnswersOthersThoughOneAsksForMuchAndTakesNothing) {
  expect_a_transfer_ends_well(true);
  stranger_.acknowledges = false;
  constexpr int kRequests = 190'000;
  int said = 0;
  for (; said < kRequests && !stranger_.is_closed(); ++said) {
    stranger_.say({.operation = Operation::active_request, .source_port = 9, .target_port = 12'345, .cookie = 5});
    if (said % 10'000 == 9'999) {
      stranger_.flush();
      expect_a_transfer_ends_well(said % 20'000 > 10'000);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(said, 60'000) << "it may ask for much";
  EXPECT_FALSE(stranger_.settle()) << "it was put out";
  EXPECT_TRUE(stranger_.is_closed());
  EXPECT_EQ(victim_.counter("engine.expelled.takes_no_answers"), 1u);
  EXPECT_THAT(victim_.core->describe_peer(stranger_.address()), testing::HasSubstr("took answers to"));
  expect_a_transfer_ends_well(true);
  expect_a_transfer_ends_well(false);
}

// What travels of a key is added to it, so it must not be told to everybody who greets.
TEST_F(AttackedEngine, TellsNobodyItsEpoch) {
  EXPECT_NE(stranger_.theirs().epoch, victim_.core->epoch());
}

// Keys of memory, by the ten thousands: whoever has the right to one does not show so many others.
TEST_F(AttackedEngine, PutsOutWhoeverGuessesKeys) {
  int said = 0;
  for (; said < 190'000 && !stranger_.is_closed(); ++said) {
    const auto operation = said % 2 == 0 ? Operation::put : Operation::get;
    const auto key = static_cast<std::uint64_t>(said);
    stranger_.say({.operation = operation, .source_port = 9, .target_port = kPort, .key = key, .cookie = 5});
  }
  EXPECT_FALSE(stranger_.settle());
  EXPECT_TRUE(stranger_.is_closed());
  EXPECT_EQ(victim_.counter("engine.expelled.guesses"), 1u);
  EXPECT_GT(victim_.counter("engine.wrong_secrets.exposures"), 65'000u);
  EXPECT_THAT(victim_.core->describe_peer(stranger_.address()), testing::HasSubstr("wrong keys"));
  expect_a_transfer_ends_well(true);
}

}  // namespace
}  // namespace fairlead::tests
