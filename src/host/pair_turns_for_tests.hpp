#pragma once
// One application with queue pairs at an engine of the test. The test takes its turns, one at a time.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "embedded/attach.hpp"
#include "host/application_pairs.hpp"
#include "host/hostile_pairs_for_tests.hpp"
#include "host/pair_calls.hpp"
#include "host/pair_layout.hpp"
#include "queue/consumer.hpp"
#include "shm/arena.hpp"

namespace fairlead::host {

/// Runs the turns of one application, one at a time.
class TurnsOfPairs : public ::testing::Test {
 protected:
  void SetUp() override {
    core_ = embedded::attach_embedded(base::SocketAddress::from_ip("127.0.0.1", 0).value(), {}).value();
    rings_ = shm::Memory::create({.head_bytes = PairLayout::bytes()}).value();
    new (rings_.head()) PairPage{};
    events_.emplace(queue::Consumer::create({rings_.head() + PairLayout::events(), PairLayout::events_bytes()},
                                            {.element_bytes = sizeof(PairNews), .elements = kPairEventsMax + 1})
                        .value());
    PairMemory shared{
        .rings = shm::Arena::view(rings_.descriptor(), PairLayout::bytes()).value(),
        .regions = {
            .memory = shm::Memory::create({.head_bytes = kRegionBytes}).value(), .file = {}, .bytes = kRegionBytes}};
    shared.regions.file =
        base::ForeignDescriptor(base::FileDescriptor(::dup(shared.regions.memory.descriptor())), nullptr);
    auto& core = static_cast<embedded::EmbeddedPairs&>(*core_->pairs());
    pairs_ = ApplicationPairs::open(core, *tools_, std::move(shared), {}).value();
    requests_.emplace(rings_.head() + PairLayout::requests());
    receives_.emplace(rings_.head() + PairLayout::receives());
  }
  void TearDown() override {
    for (pairs_->leave(); !pairs_->is_gone();) pairs_->give_events(), core_->progress();
  }
  void post(const PairRequest& request, std::span<const std::byte> body) {
    (is_receive(request) ? *receives_ : *requests_).put(request, body, [] { return false; });
  }
  void call(CallKind kind, const PairCall& call, std::span<const MemoryPiece> pieces = {}) {
    std::vector<std::byte> body(sizeof call + pieces.size_bytes());
    std::memcpy(body.data(), &call, sizeof call);
    std::ranges::copy(std::as_bytes(pieces), body.begin() + sizeof call);
    post({.kind = std::to_underlying(Post::call),
          .opcode = std::to_underlying(kind),
          .bytes = static_cast<std::uint16_t>(body.size())},
         body);
  }
  void change(PairCall& pair, verbs::QpState to) {
    pair.attributes.state = std::to_underlying(to);
    call(CallKind::change_pair, pair);
    pair.from = pair.attributes.state;
  }
  /// Opens a queue pair as asked. `asked` then names it, and has the attributes of a peer on this host but for its
  /// number.
  PairAnswer opened(PairCall& asked) {
    call(CallKind::open_pair, asked);
    serve();
    const PairAnswer pair = page().replies[0].answer;
    EXPECT_EQ(pair.status, 0u) << pair.text.data();
    asked.object = pair.object;
    asked.generation = pair.generation;
    asked.attributes.path_mtu = 1;
    asked.attributes.av.is_global = 1;
    asked.attributes.av.dgid = core_->address().ip;
    return pair;
  }
  void move_to_rts(PairCall& pair) {
    for (const auto state : {verbs::QpState::init, verbs::QpState::rtr, verbs::QpState::rts}) change(pair, state);
    serve();
  }
  /// Opens a queue pair as asked, and moves it to RTS. `asked` can change it further.
  PairAnswer connected_to_itself(PairCall& asked) {
    const PairAnswer pair = opened(asked);
    asked.attributes.dest_qp_num = pair.number;
    asked.attributes.rnr_retry = 7;
    asked.attributes.min_rnr_timer = 1;  // 10 us
    move_to_rts(asked);
    return pair;
  }
  void serve() {
    while (pairs_->take_requests()) {
    }
    core_->progress();
    hear();
  }
  /// Takes the events, without a turn.
  void hear() {
    pairs_->give_events();
    while (const std::byte* const element = events_->get()) {
      PairNews news;
      std::memcpy(&news, element, sizeof news);
      if ((news.retires & PairNews::kIsNotice) != 0 || news.completion.status != verbs::WcStatus::success) continue;
      ++successes_;
      if (news.completion.opcode == verbs::WcOpcode::receive) received_.push_back(news.completion.wr_id);
    }
  }
  PairPage& page() { return *reinterpret_cast<PairPage*>(rings_.head()); }

  std::shared_ptr<engine::Core> core_;
  const std::unique_ptr<PairTools> tools_ = std::make_unique<PairTools>();
  shm::Memory rings_;
  std::unique_ptr<ApplicationPairs> pairs_;
  std::optional<PairRingForTests> requests_, receives_;
  std::optional<queue::Consumer> events_;
  std::uint64_t successes_ = 0;
  std::vector<std::uint64_t> received_;  // the ids of receives that have succeeded
};

}  // namespace fairlead::host
