// The state that an engine hands over to the next program in its process. It is restored exactly, or refused if it
// contradicts itself or the options.

#include "engine/handover.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "base/saved.hpp"
#include "path/sim_network.hpp"
#include "wire/layout.hpp"

namespace fairlead::engine {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr std::uint32_t kPort = 34U << 12 | 1U;
constexpr std::size_t kBytes = 400'000;

base::SavedBytes bytes_of(EngineState state) {
  base::SavedWriter writer;
  writer(state);
  return writer.bytes();
}

/// Far has received a part of a long message from near when its state is saved.
class HandoverTest : public testing::Test {
 protected:
  struct Side {
    Side(path::SimNetwork& network, int number, const EngineOptions& options)
        : address(*base::SocketAddress::from_ip("10.0.0." + std::to_string(number), 20480)),
          engine(*network.attach(address), address, options, static_cast<std::uint64_t>(number), 100) {}
    base::SocketAddress address;
    Engine engine;
    PortHandle port{};
    std::vector<std::byte> bytes = std::vector<std::byte>(kBytes);
    std::array<iovec, 1> memory{{{bytes.data(), bytes.size()}}};
  };

  HandoverTest() {
    for (Side* side : {&near_, &far_}) {
      side->port = *side->engine.ports().open(kPort);
      EXPECT_EQ(side->engine.ports().find(side->port)->events->reserve(8), Status::ok);
    }
    for (std::uint64_t cookie = 0; cookie < 2; ++cookie)
      EXPECT_EQ(far_.engine.messages().post_receive(far_.port, {.memory = far_.memory, .size_min = 1, .cookie = cookie},
                                                    receives_[cookie]),
                Status::ok);
    OperationHandle operation;
    EXPECT_EQ(near_.engine.messages().send(near_.port, {.to = {far_.address, kPort}, .part = {near_.memory, kBytes, 0}},
                                           operation, now_),
              Status::ok);
    for (int step = 0; step < 10'000 && far_.engine.use().placements == 0; ++step) pass();
    state_ = save();
  }
  void pass() {
    now_ += 10us;
    network_.advance(now_);
    near_.engine.progress(now_);
    far_.engine.progress(now_);
  }
  EngineState save() {
    Handover handover(far_.engine);
    auto saved = handover.save();
    for (int step = 0; step < 10'000 && !saved; ++step) {
      now_ += 10us;  // near makes no pass, otherwise the whole message would arrive
      network_.advance(now_);
      far_.engine.progress(now_);
      saved = handover.save();
    }
    EXPECT_TRUE(saved) << saved.error().message;
    return *saved;
  }
  /// Restores the state in an engine of another network. Returns the error text, or "none".
  std::string error_of(const EngineState& state, const EngineOptions& options = {}) {
    path::SimNetwork network(2);
    Engine engine(*network.attach(far_.address), far_.address, options, state.epoch, state.seed);
    Handover handover(engine);
    const auto restored = handover.restore(state, now_);
    if (restored) engine.check();
    return restored ? "none" : restored.error().message;
  }
  template <typename Change>
  std::string error_after(Change&& change) {
    EngineState state = state_;
    change(state);
    return error_of(state);
  }

  path::SimNetwork network_{1};
  base::Instant now_{1s};
  Side near_{network_, 1, {}}, far_{network_, 2, {}};
  std::array<OperationHandle, 2> receives_{};
  EngineState state_;
};

TEST_F(HandoverTest, IsTheSameAfterwards) {
  ASSERT_EQ(state_.messages.placements.size(), 1u);
  state_.link.rooms_taken += 77;  // as if it had sent short messages, whose names must not come again
  path::SimNetwork network(2);
  Engine engine(*network.attach(far_.address), far_.address, {}, state_.epoch, state_.seed);
  Handover handover(engine);
  ASSERT_TRUE(handover.restore(state_, now_));
  for (std::uint64_t cookie = 0; cookie < 2; ++cookie)
    EXPECT_TRUE(handover.give_memory(far_.port, receives_[cookie], cookie, far_.memory));
  EXPECT_TRUE(handover.finish(state_));
  engine.check();
  for (int step = 0; step < 10; ++step) engine.progress(now_ + step * 10us);
  EXPECT_EQ(bytes_of(handover.save().value()), bytes_of(state_));
}

TEST_F(HandoverTest, AKeyInAdvanceAndATransferThatIsToBeRepeatedAreKept) {
  OperationHandle blank, early;
  std::uint64_t own_key = 0, key = 0;
  ASSERT_EQ(far_.engine.messages().exposures().add_blank(far_.port, blank, own_key), Status::ok);
  OperationHandle of_near;
  ASSERT_EQ(near_.engine.messages().exposures().add_blank(near_.port, of_near, key), Status::ok);
  ASSERT_EQ(far_.engine.messages().transfer(far_.port, OperationKind::put,
                                            {.target = {near_.address, kPort},
                                             .target_epoch = near_.engine.epoch(),
                                             .key = key,
                                             .memory = far_.memory,
                                             .length = 100,
                                             .cookie = 7},
                                            early, now_),
            Status::ok);
  for (int step = 0; step < 10'000 && near_.engine.messages().counters().asked_early == 0; ++step) pass();
  const auto repeats = [](const EngineState& state) {
    return std::ranges::any_of(state.messages.operations,
                               [](const OperationState& one) { return one.operation.is_to_repeat; });
  };
  Handover(far_.engine).hold_answers(true);
  state_ = save();
  for (int step = 0; step < 1000 && !repeats(state_); ++step) {
    pass();
    state_ = save();
  }
  ASSERT_TRUE(repeats(state_));
  path::SimNetwork network(2);
  Engine engine(*network.attach(far_.address), far_.address, {}, state_.epoch, state_.seed);
  Handover handover(engine);
  ASSERT_TRUE(handover.restore(state_, now_));
  EXPECT_TRUE(engine.messages().exposures().has_blank(far_.port, blank));
  EXPECT_FALSE(handover.give_memory(far_.port, blank, 0, far_.memory)) << "it has none yet";
  EXPECT_TRUE(engine.messages().is_retrying());
  EXPECT_TRUE(handover.give_memory(far_.port, early, 7, far_.memory));
  for (OperationState& one : state_.messages.operations)
    if (one.operation.is_to_repeat) one.operation.is_answer_pending = false;
  EXPECT_THAT(error_of(state_), HasSubstr("contradicts itself"));
}

TEST_F(HandoverTest, AnOperationTakesNoMemoryOfAnother) {
  path::SimNetwork network(2);
  Engine engine(*network.attach(far_.address), far_.address, {}, state_.epoch, state_.seed);
  Handover handover(engine);
  ASSERT_TRUE(handover.restore(state_, now_));
  const auto gives = [&](PortHandle port, OperationHandle operation, std::uint64_t cookie, std::size_t bytes) {
    const std::array<iovec, 1> memory{{{far_.bytes.data(), bytes}}};
    return handover.give_memory(port, operation, cookie, memory);
  };
  EXPECT_FALSE(gives(far_.port, receives_[0], 0, kBytes - 1));
  EXPECT_FALSE(gives(far_.port, receives_[0], 1, kBytes));
  EXPECT_FALSE(gives({far_.port.slot, far_.port.generation + 1}, receives_[0], 0, kBytes));
  EXPECT_FALSE(gives(far_.port, {receives_[0].slot, receives_[0].generation + 1, {}}, 0, kBytes));
  EXPECT_TRUE(gives(far_.port, receives_[0], 0, kBytes));
  EXPECT_FALSE(gives(far_.port, receives_[0], 0, kBytes)) << "it has some";
  EXPECT_FALSE(handover.finish(state_));
}

TEST_F(HandoverTest, OptionsThatCannotChangeAreNamed) {
  EngineOptions options;
  ASSERT_TRUE(options.set(Option::operations_max, 512));
  EXPECT_THAT(error_of(state_, options), HasSubstr("operations_max"));
}

TEST_F(HandoverTest, WhatContradictsItselfIsRefused) {
  EXPECT_EQ(error_after([](EngineState&) {}), "none");
  using State = EngineState;
  const auto receive = [](State& state) -> Operation& { return state.messages.operations.back().operation; };
  const auto slot = [](State& state) -> link::Reassembly::Slot& {
    return *std::ranges::find_if(state.link.peers[0].session->slots, &link::Reassembly::Slot::is_open);
  };
  EXPECT_NE(error_after([](State& state) { state.ports[0].posted.pop_back(); }), "none");
  EXPECT_NE(error_after([](State& state) { state.ports[0].posted.push_back(state.ports[0].posted[0]); }), "none");
  EXPECT_NE(error_after([](State& state) { state.ports.clear(); }), "none");
  EXPECT_NE(error_after([](State& state) { state.messages.placements[0].placement.size = kBytes + 1; }), "none");
  EXPECT_NE(error_after([](State& state) { state.messages.placements[0].placement.size = kBytes - 1; }), "none");
  EXPECT_NE(error_after([](State& state) { state.messages.placements[0].placement.offset = 1; }), "none");
  EXPECT_NE(error_after([](State& state) { state.messages.operations.pop_back(); }), "none");
  EXPECT_NE(error_after([&](State& state) { receive(state).kind = OperationKind::loan; }), "none");
  EXPECT_NE(error_after([&](State& state) { receive(state).fill = kBytes + 1; }), "none");
  EXPECT_NE(error_after([&](State& state) { receive(state).messages_left = 0; }), "none");
  EXPECT_NE(error_after([&](State& state) { receive(state).first_placement = 0; }), "none");
  EXPECT_NE(error_after([&](State& state) { slot(state).target ^= 1; }), "none");
  EXPECT_NE(error_after([&](State& state) { ++slot(state).size; }), "none");
  EXPECT_NE(error_after([&](State& state) { slot(state).bytes_left = 0; }), "none");
  EXPECT_NE(error_after([](State& state) { state.link.peers[0].session->theirs.window_segments = 0; }), "none");
  EXPECT_NE(error_after([](State& state) { state.link.peers[0].candidate.emplace(); }), "none");
  EXPECT_NE(error_after([](State& state) { state.link.peers.push_back(state.link.peers[0]); }), "none");
  EXPECT_NE(error_after([](State& state) {
              link::SessionState& session = *state.link.peers[0].session;
              session.ahead.push_back(session.to_receive);
            }),
            "none");
  EXPECT_THAT(error_after([](State& state) { state.link.peers[0].session->sealed.emplace(); }),
              HasSubstr("there is no key any more"));
}

TEST_F(HandoverTest, AnAnswerThatIsNotAcknowledgedHasItsPlace) {
  const auto error_with = [&](const auto& change) {
    return error_after([&](EngineState& state) {
      link::PeerState& peer = state.link.peers[0];
      link::SegmentState segment{.is_sent = true,
                                 .sequence = peer.session->to_send - 1,
                                 .records = 1,
                                 .bytes = std::vector<std::byte>(wire::kSegmentHeaderBytes + 40)};
      change(peer, segment);
      peer.segments.push_back(segment);
    });
  };
  EXPECT_EQ(error_with([](link::PeerState&, link::SegmentState&) {}), "none");
  EXPECT_EQ(error_with([](link::PeerState&, link::SegmentState& one) { one.is_sent = false; }), "none");
  EXPECT_NE(error_with([](link::PeerState&, link::SegmentState& one) { ++one.sequence; }), "none");
  EXPECT_NE(error_with([](link::PeerState&, link::SegmentState& one) { one.sequence = one.sequence - 5000; }), "none");
  EXPECT_NE(error_with([](link::PeerState&, link::SegmentState& one) { one.records = 0; }), "none");
  EXPECT_NE(error_with([](link::PeerState&, link::SegmentState& one) { one.records = 100; }), "none");
  EXPECT_NE(error_with([](link::PeerState&, link::SegmentState& one) { one.bytes.resize(2); }), "none");
  EXPECT_NE(error_with([](link::PeerState&, link::SegmentState& one) { one.bytes.resize(4000); }), "none");
  EXPECT_NE(error_with([](link::PeerState& peer, link::SegmentState& one) { peer.segments.push_back(one); }), "none");
  EXPECT_NE(error_with([](link::PeerState& peer, link::SegmentState&) { peer.session.reset(); }), "none");
}

}  // namespace
}  // namespace fairlead::engine
