// Queue pairs that an engine hands over to the next program in its process. They are restored exactly, or refused if
// their state contradicts itself.

#include "qp/pairs_handover.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "engine/handover.hpp"
#include "qp/pair_world_for_tests.hpp"

namespace fairlead::qp {
namespace {

using testing::HasSubstr;

/// The responder has executed some requests, and has a receive left.
class PairsHandoverTest : public testing::Test {
 protected:
  PairsHandoverTest() : world_(1, {}) {
    for (PairEngine& host : world_.hosts) {
      host.pairs().regions().remove(host.key);
      host.key = host.pairs().regions().add({.base = host.memory.data(),
                                             .length = host.memory.size(),
                                             .iova = host.address(0),
                                             .access = PairWorld::kRights | verbs::access::mw_bind,
                                             .domain = 1,
                                             .is_foreign = true});
    }
    near_ = world_.open(0, verbs::QpType::rc);
    far_ = world_.open(1, verbs::QpType::rc);
    world_.connect(0, near_, far_, 100, 200);
    world_.connect(1, far_, near_, 200, 100);
    post_receives(4);
    EXPECT_EQ(post_sends(2), 0);
    world_.run_until(world_.now + 5ms);
    engine::Handover(*far().engine).hold_answers(true);
    EXPECT_EQ(post_sends(1), 0);
    world_.run_until(world_.now + 5ms);
    (void)far().completions();
    window_ = far().pairs().regions().add_window(verbs::WindowType::type_1, 1);
    EXPECT_EQ(far().pairs().regions().bind({.window = window_,
                                            .key = window_,
                                            .lkey = far().key,
                                            .access = verbs::access::remote_read,
                                            .addr = far().address(64),
                                            .length = 128},
                                           1, far_.number),
              verbs::Cause::none);
    state_ = PairsHandover(far().pairs()).save().value();
  }
  PairEngine& far() { return world_.hosts[1]; }
  void post_receives(int count) {
    for (int i = 0; i < count; ++i) {
      const verbs::Sge sge = far().sge(4096, 512);
      const verbs::ReceiveRequest receive{.id = static_cast<std::uint64_t>(i), .sges = {&sge, 1}};
      std::size_t taken = 0;
      EXPECT_EQ(far().pairs().post_receive(far_.handle, {&receive, 1}, taken), 0);
    }
  }
  int post_sends(int count) {
    int error = 0;
    for (int i = 0; i < count && error == 0; ++i) {
      const verbs::Sge sge = world_.hosts[0].sge(0, 256);
      verbs::SendRequest send{.id = static_cast<std::uint64_t>(i), .opcode = verbs::SendOpcode::send};
      send.sges = {&sge, 1};
      std::size_t taken = 0;
      error = world_.hosts[0].pairs().post_send(near_.handle, {&send, 1}, taken, world_.now);
    }
    return error;
  }
  static base::SavedBytes bytes_of(PairsState state) {
    base::SavedWriter writer;
    writer(state);
    return writer.bytes();
  }
  /// Restores the state in another engine, without what the owner supplies. Returns the error text, or "none".
  std::string error_of(const PairsState& state) {
    path::SimNetwork network(3);
    const auto at = *base::SocketAddress::from_ip("10.0.0.2", 20480);
    engine::Engine engine(*network.attach(at), at, {}, 1, 1);
    const auto restored = PairsHandover(engine.pairs()).restore(state, world_.now, 1024);
    if (restored) engine.check();
    return restored ? "none" : restored.error().message;
  }
  template <typename Change>
  std::string error_after(Change&& change) {
    PairsState state = state_;
    change(state);
    return error_of(state);
  }

  PairWorld world_;
  PairWorld::End near_, far_;
  std::uint32_t window_ = 0;
  PairsState state_;
};

TEST_F(PairsHandoverTest, AreTheSameAfterwards) {
  ASSERT_EQ(state_.pairs.size(), 1u);
  EXPECT_EQ(state_.queues.at(0).posted.size(), 1u);
  path::SimNetwork network(3);
  const auto at = *base::SocketAddress::from_ip("10.0.0.2", 20480);
  NoticeStream notices(base::FileDescriptor(::eventfd(0, EFD_SEMAPHORE)));
  engine::Engine engine(*network.attach(at), at, {}, 1, 1);
  PairsHandover handover(engine.pairs());
  ASSERT_TRUE(handover.restore(state_, world_.now, 1024));
  EXPECT_FALSE(handover.finish(state_)) << "nothing has its memory";
  EXPECT_NE(handover.give_notices(far_.handle, &notices, 7), nullptr);
  EXPECT_EQ(handover.give_notices(far_.handle, &notices, 7), nullptr) << "it has them";
  EXPECT_FALSE(handover.finish(state_)) << "the region has no memory";
  EXPECT_TRUE(handover.give_memory(far().key, far().memory.data(), far().memory.size()));
  EXPECT_FALSE(handover.give_memory(far().key, far().memory.data(), far().memory.size())) << "it has it";
  ASSERT_TRUE(handover.finish(state_));
  engine.check();
  EXPECT_EQ(bytes_of(handover.save().value()), bytes_of(state_));
  const auto place = engine.pairs().regions().locate(window_, 1, far().address(64), 128, verbs::access::remote_read, 9);
  EXPECT_EQ(place.at(), far().memory.data() + 64);
}

TEST_F(PairsHandoverTest, WhatIsInFlightDelaysThem) {
  EXPECT_EQ(post_sends(1), 0);
  EXPECT_EQ(PairsHandover(world_.hosts[0].pairs()).save().error().status, Status::again);
}

TEST_F(PairsHandoverTest, MemoryOfTheProcessItselfIsNotHandedOver) {
  far().pairs().regions().add({.base = far().memory.data(), .length = 64, .domain = 1});
  EXPECT_EQ(PairsHandover(far().pairs()).save().error().status, Status::not_supported);
}

TEST_F(PairsHandoverTest, AContradictionIsRefused) {
  EXPECT_EQ(error_after([](PairsState&) {}), "none");
  EXPECT_THAT(error_after([](PairsState& state) { --state.free.back().count; }), HasSubstr("do not fit in the table"));
  EXPECT_NE(error_after([](PairsState& state) { state.free.back() = {state.pairs[0].index, state.free.back().count}; }),
            "none");
  EXPECT_NE(error_after([](PairsState& state) { state.regions.free.pop_back(); }), "none");
  EXPECT_NE(error_after([](PairsState& state) { state.regions.used[0].slot = 1 << 20; }), "none");
  EXPECT_NE(error_after([](PairsState& state) { state.pairs[0].receives = 77; }), "none");
  EXPECT_NE(error_after([](PairsState& state) { state.pairs[0].stream = 1; }), "none");
  EXPECT_NE(error_after([](PairsState& state) { state.pairs[0].route.peer.slot = 1024; }), "none");
  EXPECT_NE(error_after([](PairsState& state) { state.pairs[0].capacity.max_inline = 1 << 20; }), "none");
  EXPECT_NE(error_after([](PairsState& state) { ++state.pairs[0].sends.next; }), "none");
  EXPECT_NE(error_after([](PairsState& state) { state.pairs[0].early.push_back(0); }), "none");
  EXPECT_NE(error_after([](PairsState& state) { state.pairs[0].current.arrival = 0; }), "none");
  EXPECT_NE(error_after([](PairsState& state) { state.pairs[0].current.left = 1; }), "none");
  EXPECT_NE(error_after([](PairsState& state) { state.queues[0].depth = 0; }), "none");
  EXPECT_NE(error_after([](PairsState& state) { state.queues.clear(); }), "none");
  EXPECT_NE(error_after([](PairsState& state) { state.arrivals.emplace_back(); }), "none");
}

}  // namespace
}  // namespace fairlead::qp
