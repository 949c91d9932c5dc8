// Active messages of an engine that another program takes over: what was open, or had arrived in part, goes on there.

#include <gmock/gmock.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/saved.hpp"
#include "engine/active_sides_for_tests.hpp"
#include "engine/handover.hpp"

namespace fairlead::engine::active_sides {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr std::size_t kLong = 300'000;

base::SavedBytes saved_bytes(ActiveState state) {
  base::SavedWriter writer;
  writer(state);
  return writer.bytes();
}

/// Side b is handed over.
class ActiveHandovers : public ActiveMessages {
 protected:
  void SetUp() override {
    ActiveMessages::SetUp();
    a().active().rule = {AccessRule::Kind::equal, 42};
    b().active().segment = segment();
  }
  Segment segment() { return {segment_.data(), segment_.size()}; }
  void pass(bool is_a_running = true) {
    now_ += 10us;
    network_.advance(now_);
    if (is_a_running) a().engine->progress(now_);
    b().engine->progress(now_);
  }
  /// `is_a_running`: a may send more before b is still.
  EngineState save(bool is_a_running = false) {
    auto saved = Handover(*b().engine).save();
    for (int step = 0; step < 10'000 && !saved; ++step) {
      pass(is_a_running);
      saved = Handover(*b().engine).save();
    }
    EXPECT_TRUE(saved) << saved.error().message;
    return *saved;
  }
  /// Another program continues as b, on the same network.
  void take_over(const EngineState& saved) {
    auto path = Handover(*b().engine).take_path();
    b().engine = std::make_unique<Engine>(std::move(path), saved.address, options_, saved.epoch, saved.seed);
    ASSERT_EQ(error_of(Handover(*b().engine), saved), "none");
    ASSERT_TRUE(Handover(*b().engine).active().give_segment(b().port, segment()));
    ASSERT_TRUE(Handover(*b().engine).finish(saved));
    b().engine->check();
  }
  std::string error_of(Handover handover, const EngineState& saved) {
    const auto restored = handover.restore(saved, now_);
    return restored ? "none" : restored.error().message;
  }
  /// Restores what `change` has made of the state in an engine of another network. Returns the error, or "none".
  std::string error_after(const EngineState& saved, const std::function<void(EngineState&)>& change) {
    EngineState state = saved;
    change(state);
    path::SimNetwork network(2);
    Engine engine(*network.attach(state.address), state.address, options_, state.epoch, state.seed);
    std::string error = error_of(Handover(engine), state);
    if (error == "none") engine.check();
    return error;
  }
  /// Both messages have arrived at b in part: some of the first one's datagrams are lost.
  void begin_two_long_ones() {
    network_.set_default_link({.loss = 0.3});
    ASSERT_EQ(request(b().remote(), carried_, {.head = 8, .name = 1, .cookie = 1}), Status::ok);
    ASSERT_EQ(request(b().remote(), placed_, {.is_placed = true, .head = 16, .name = 2, .offset = 4096, .cookie = 2}),
              Status::ok);
    for (int step = 0; step < 10'000 && b().engine->active().filling() < 2; ++step) pass();
    network_.set_default_link({});
    for (int step = 0; step < 100; ++step) pass(false);  // nothing is on its way any more
    ASSERT_EQ(b().engine->active().filling(), 2u);
  }
  static void answer(ActiveSide& side, const Arrival& arrival) {
    ActiveMessage reply{
        .to = arrival.source, .kind = ActiveKind::reply, .name = arrival.name, .reply_access = arrival.reply_access};
    EXPECT_EQ(side.engine->send_active(side.port, reply, base::Instant(1s)), Status::ok);
  }

  std::vector<std::byte> segment_ = std::vector<std::byte>(1 << 20);
  const std::vector<std::byte> carried_ = bytes_of(kLong, 3), placed_ = bytes_of(kLong, 5);
};

TEST_F(ActiveHandovers, MessagesThatHadComeInPartComeWhole) {
  begin_two_long_ones();
  const EngineState saved = save();
  ASSERT_EQ(saved.active.fillings.size(), 2u) << "neither is complete";
  take_over(saved);
  EXPECT_EQ(saved_bytes(save().active), saved_bytes(saved.active)) << "it is the same";
  run(5s);
  std::map<std::uint64_t, Arrival*> arrivals;
  while (Arrival* const arrival = b().active().next()) arrivals[arrival->name] = arrival;
  ASSERT_EQ(arrivals.size(), 2u);
  for (const auto& [name, arrival] : arrivals) EXPECT_EQ(arrival->status, Status::ok) << name;
  EXPECT_TRUE(holds(arrivals[1]->head_bytes, carried_));
  EXPECT_TRUE(holds(arrivals[2]->head_bytes, std::span(placed_).first(16)));
  EXPECT_TRUE(holds(segment_.data() + 4096, std::span(placed_).subspan(16)));
  EXPECT_EQ(arrivals[2]->data, segment_.data() + 4096);
}

TEST_F(ActiveHandovers, APlacedOneFailsIfTheSegmentHadChanged) {
  begin_two_long_ones();
  std::vector<std::byte> other(segment_.size());
  segment_.swap(other);  // as ServedActive::set_segment(): what had begun belongs to the previous one
  b().active().segment = segment();
  const auto untouched = segment_;
  const EngineState saved = save();
  take_over(saved);
  run(5s);
  Status status = Status::ok;
  while (Arrival* const arrival = b().active().next())
    if (arrival->name == 2) status = arrival->status;
  EXPECT_EQ(status, Status::invalid);
  EXPECT_EQ(segment_, untouched);
}

TEST_F(ActiveHandovers, OpenRequestsGetTheirAnswers) {
  // One in each direction, each without an answer at the time of the handover.
  ASSERT_EQ(request(b().remote(), bytes_of(8), {.name = 7}), Status::ok);
  std::swap(sides_[0], sides_[1]);
  ASSERT_EQ(request(b().remote(), bytes_of(8), {.name = 9}), Status::ok);
  std::swap(sides_[0], sides_[1]);
  run(50ms);
  const Arrival* const at_a = a().active().next();
  const Arrival* const at_b = b().active().next();
  ASSERT_TRUE(at_a != nullptr && at_b != nullptr);
  const ArrivalState kept = state_of(*at_b);
  const std::uint64_t way = conversation_.way;
  take_over(save(true));
  // What the owner of the port had not taken is given back to it.
  ASSERT_TRUE(Handover(*b().engine).active().give_arrival(b().port, kept));
  const Arrival* const again = b().active().next();
  ASSERT_NE(again, nullptr);
  EXPECT_TRUE(holds(again->head_bytes, bytes_of(8)));
  EXPECT_EQ(again->name, 7u);
  answer(b(), *again);
  answer(a(), *at_a);
  run(50ms);
  const Arrival* const of_a = a().active().next();
  ASSERT_NE(of_a, nullptr);
  EXPECT_EQ(std::pair(of_a->kind, of_a->name), std::pair(ActiveKind::reply, std::uint64_t{7}));
  const Arrival* const of_b = b().active().next();
  ASSERT_NE(of_b, nullptr) << "the new program knows the secret and the request";
  EXPECT_EQ(std::pair(of_b->kind, of_b->name), std::pair(ActiveKind::reply, std::uint64_t{9}));
  // A later loss of the peer still ends the conversations that were begun before.
  network_.set_default_link({.loss = 1});
  std::swap(sides_[0], sides_[1]);
  ASSERT_EQ(request(b().remote(), bytes_of(8), {.name = 10}), Status::ok);
  std::swap(sides_[0], sides_[1]);
  EXPECT_EQ(conversation_.way, way);
  run(20s);
  PeerLoss loss;
  std::uint64_t seen = 0;
  ASSERT_TRUE(b().engine->active().losses().next(seen, loss));
  EXPECT_TRUE(loss.ends({way, 0}));
}

TEST_F(ActiveHandovers, WhatHasArrivedIsTakenBefore) {
  ASSERT_EQ(request(b().remote(), bytes_of(8), {.name = 7}), Status::ok);
  run(50ms);
  const auto refused = Handover(*b().engine).save();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, Status::again);
  EXPECT_NE(b().active().next(), nullptr);
  EXPECT_TRUE(Handover(*b().engine).save());
}

TEST_F(ActiveHandovers, LossesAndLeftPortsAreRemembered) {
  ASSERT_EQ(request(b().remote(), bytes_of(8), {.name = 7}), Status::ok);
  run(50ms);
  ASSERT_NE(b().active().next(), nullptr);
  b().engine->active().leave(b().port, Status::canceled);
  const auto second = b().engine->ports().open(0x410009U);
  ASSERT_TRUE(second);
  ASSERT_EQ(b().engine->activate(*second), Status::ok);
  b().engine->active().leave(*second, Status::unreachable);
  b().engine->free_port(*second);
  EngineState saved = save(true);
  EXPECT_EQ(saved.active.left.size(), 1u);
  saved.active.losses_counted = 5000;
  for (std::uint64_t mark = 5000 - ActivePorts::kLossesKept + 1; mark <= 5000; ++mark)
    saved.active.losses.push_back({a().engine->address(), Status::silent, false, 77, mark});
  take_over(saved);
  EXPECT_EQ(saved_bytes(save(true).active), saved_bytes(saved.active));
  PeerLoss loss;
  std::uint64_t seen = 4999;
  EXPECT_TRUE(b().engine->active().losses().next(seen, loss));
  EXPECT_EQ(loss.mark, 5000u);
  ASSERT_EQ(request({b().engine->address(), 0x410009U}, bytes_of(8), {.name = 8}), Status::ok);
  ASSERT_EQ(request(b().remote(), bytes_of(8), {.name = 11}), Status::ok);
  run(50ms);
  std::map<std::uint64_t, Status> returned;
  while (const Arrival* const arrival = a().active().next())
    if (arrival->kind == ActiveKind::returned) returned[arrival->name] = arrival->status;
  EXPECT_EQ(returned[8], Status::unreachable) << "its owner had died";
  EXPECT_EQ(returned[11], Status::canceled) << "its owner had announced its end";
}

TEST_F(ActiveHandovers, WhatContradictsItselfIsRefused) {
  begin_two_long_ones();
  const EngineState saved = save();
  const auto error = [&](const std::function<void(ActiveState&)>& change) {
    return error_after(saved, [&](EngineState& state) { change(state.active); });
  };
  EXPECT_EQ(error([](ActiveState&) {}), "none");
  const std::vector<std::function<void(ActiveState&)>> changes{
      [](ActiveState& state) { state.ports.push_back(state.ports[0]); },
      [](ActiveState& state) { state.ports[0].slot = 9; },
      [](ActiveState& state) { state.ports[0].rule.kind = static_cast<AccessRule::Kind>(3); },
      [](ActiveState& state) { state.ports[0].gone = static_cast<Status>(200); },
      [](ActiveState& state) { state.ports[0].requests.assign(2, {.name = 5, .to = {}, .is_open = true}); },
      [](ActiveState& state) { state.ports[0].requests.push_back({.name = 0xffff'ffff, .to = {}, .is_open = true}); },
      [](ActiveState& state) { state.fillings.pop_back(); },
      [](ActiveState& state) { state.fillings[1].slot = state.fillings[0].slot; },
      [](ActiveState& state) { state.fillings[0].slot = 4000; },
      [](ActiveState& state) { state.fillings[0].port = 9; },
      [](ActiveState& state) { state.filling_names.assign(1 << 20, 1); },
      [](ActiveState& state) { state.fillings[0].arrival->bytes.pop_back(); },
      [](ActiveState& state) { state.fillings[1].arrival->data_length += 8; },
      [](ActiveState& state) { state.fillings[0].arrival->head = 12; },
      [](ActiveState& state) { state.fillings[0].arrival->head = 4096; },
      [](ActiveState& state) { state.fillings[0].arrival->kind = static_cast<ActiveKind>(7); },
      [](ActiveState& state) { state.fillings[0].arrival->status = static_cast<Status>(200); },
      [](ActiveState& state) { state.answers.push_back({.peer = {1U << 30, 1}, .envelope = {}}); },
      [](ActiveState& state) { state.losses_counted = 1; },
      [](ActiveState& state) {
        state.losses_counted = 1;
        state.losses.push_back({.mark = 2});
      },
      [](ActiveState& state) { state.left.push_back({.number = 5, .why = static_cast<Status>(200)}); },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) EXPECT_NE(error(changes[i]), "none") << "change " << i;
  // Two messages cannot arrive in one place.
  const auto twice = error_after(saved, [](EngineState& state) {
    std::vector<link::Reassembly::Slot*> open;
    for (link::Reassembly::Slot& slot : state.link.peers[0].session->slots)
      if (slot.is_open && slot.target != 0) open.push_back(&slot);
    ASSERT_EQ(open.size(), 2u);
    open[1]->target = open[0]->target;
  });
  EXPECT_THAT(twice, HasSubstr("has no place"));
}

}  // namespace
}  // namespace fairlead::engine::active_sides
