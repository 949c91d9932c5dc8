// Turns of an application's queue pairs, one at a time: calls and posts in any order, and where a turn ends.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "embedded/attach.hpp"
#include "host/application_pairs.hpp"
#include "host/hostile_pairs_for_tests.hpp"
#include "host/pair_calls.hpp"
#include "host/pair_layout.hpp"
#include "qp/opcode_traits.hpp"
#include "queue/consumer.hpp"
#include "queue/producer.hpp"
#include "shm/arena.hpp"
#include "tests/environment.hpp"

namespace fairlead::host {
namespace {

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
    pairs_ = ApplicationPairs::open(*core_->pairs(), *tools_, std::move(shared), {}).value();
    segment_.emplace(std::span(rings_.head() + PairLayout::requests(), PairLayout::requests_bytes()));
    requests_.emplace(queue::Producer::attach(*segment_).value());
  }
  void TearDown() override {
    for (pairs_->leave(); !pairs_->is_gone();) pairs_->give_events(), core_->progress();
  }
  void put(const void* bytes, std::size_t count) {
    std::memcpy(requests_->pnext(), bytes, count);
    requests_->put();
  }
  void post(PairRequest request, std::span<const std::byte> body) {
    const std::size_t here = std::min(body.size(), request.begin.size());
    if (here > 0) std::memcpy(request.begin.data(), body.data(), here);
    put(&request, sizeof request);
    for (std::size_t at = here; at < body.size(); at += sizeof request)
      put(body.data() + at, std::min(body.size() - at, sizeof request));
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
  /// Opens a queue pair as asked, and moves it to RTS. `asked` can change it further.
  PairAnswer connected_to_itself(PairCall& asked) {
    call(CallKind::open_pair, asked);
    serve();
    const PairAnswer pair = page().replies[0].answer;
    EXPECT_EQ(pair.status, 0u) << pair.text.data();
    asked.object = pair.object;
    asked.generation = pair.generation;
    asked.attributes.dest_qp_num = pair.number;
    asked.attributes.path_mtu = 1;
    asked.attributes.rnr_retry = 7;
    asked.attributes.min_rnr_timer = 1;  // 10 us
    asked.attributes.av.is_global = 1;
    asked.attributes.av.dgid = core_->address().ip;
    for (const auto state : {verbs::QpState::init, verbs::QpState::rtr, verbs::QpState::rts}) change(asked, state);
    return pair;
  }
  void serve() {
    while (pairs_->take_requests()) {
    }
    core_->progress();
    pairs_->give_events();
    while (const std::byte* const element = events_->get()) {
      PairNews news;
      std::memcpy(&news, element, sizeof news);
      const bool is_success = news.completion.status == verbs::WcStatus::success;
      successes_ += (news.retires & PairNews::kIsNotice) == 0 && is_success ? 1 : 0;
    }
  }
  PairPage& page() { return *reinterpret_cast<PairPage*>(rings_.head()); }
  std::uint64_t served() { return page().served.load(); }

  std::shared_ptr<engine::Core> core_;
  const std::unique_ptr<PairTools> tools_ = std::make_unique<PairTools>();
  shm::Memory rings_;
  std::unique_ptr<ApplicationPairs> pairs_;
  std::optional<OneSegment> segment_;
  std::optional<queue::Producer> requests_;
  std::optional<queue::Consumer> events_;
  std::uint64_t successes_ = 0;
};

// Sends valid calls and posts in any order, for objects that are open, closing or closed. They must harm nothing, even
// before the application is detached, and TearDown() must be able to free everything.
TEST_F(TurnsOfPairs, BringAnythingInAnyOrder) {
  std::mt19937_64 random(20261125);
  std::vector<PairAnswer> pairs, queues;
  std::vector<std::uint32_t> keys, windows;
  const auto below = [&](std::size_t bound) { return static_cast<std::uint32_t>(random() % bound); };
  // One of the last six, most of which are still open.
  const auto one_of = [&](const auto& all) {
    using Value = std::decay_t<decltype(all)>::value_type;
    return all.empty() ? Value{} : all[all.size() - 1 - below(std::min(all.size(), std::size_t{6}))];
  };
  for (int steps = tests::is_full_run() ? 2'000'000 : 12000; steps > 0; --steps) {
    PairCall asked = HostilePairs::pair_call();
    asked.domain = below(8) == 0 ? 1 : 0;
    const PairAnswer pair = one_of(pairs), queue = one_of(queues);
    asked.object = pair.object;
    asked.generation = pair.generation;
    asked.key = below(2) == 0 ? one_of(keys) : one_of(windows);
    if (below(3) != 0) {
      const auto opcode = static_cast<verbs::SendOpcode>(below(16));
      PairRequest request{.remote_addr = below(64) * 8,
                          .object = pair.object,
                          .generation = pair.generation,
                          .rkey = asked.key,
                          .kind = static_cast<std::uint8_t>(below(3)),
                          .flags = static_cast<std::uint8_t>(below(16))};
      std::vector<verbs::Sge> pieces(below(2));
      for (verbs::Sge& piece : pieces) piece = {below(64) * 8, below(8) == 0 ? 65536U : 8U, one_of(keys)};
      if (request.kind == std::to_underlying(Post::post_to_queue)) {
        request.object = queue.object;
        request.generation = queue.generation;
      } else if (request.kind == std::to_underlying(Post::post_send)) {
        request.opcode = std::to_underlying(opcode);
        const verbs::WindowBinding binding{.window = one_of(windows),
                                           .key = one_of(windows) + below(2),
                                           .lkey = one_of(keys),
                                           .access = verbs::access::remote_write,
                                           .addr = below(64) * 8,
                                           .length = below(2) * 64};
        std::memcpy(request.words.data(), &binding, sizeof binding);
        if (!qp::is_opcode(opcode)) continue;
      }
      request.pieces = static_cast<std::uint8_t>(pieces.size());
      post(request, std::as_bytes(std::span(pieces)));
      if (below(4) == 0) serve();
      continue;
    }
    const auto kind = static_cast<CallKind>(below(std::to_underlying(CallKind::linger) + 1));
    const bool is_of_queue = kind >= CallKind::open_queue && kind <= CallKind::queue_facts;
    if (is_of_queue) asked.object = queue.object, asked.generation = queue.generation;
    asked.type = static_cast<std::uint8_t>(kind == CallKind::add_window ? 1 + below(2) : 2 + below(3));
    asked.depth = 1 + below(32);
    asked.pieces = 1;
    asked.shares_receives = static_cast<std::uint8_t>(below(4) == 0);
    asked.signals_all = 1;
    asked.queue = queue.object;
    asked.queue_generation = queue.generation;
    asked.length = 65536;
    asked.access = 0x1F;
    asked.from = static_cast<std::uint8_t>(below(5));
    asked.attributes.state = static_cast<std::uint8_t>(below(3) == 0 ? below(7) : asked.from + 1);
    asked.attributes.dest_qp_num = below(2) == 0 ? pair.number : one_of(pairs).number;
    asked.attributes.access_flags = 0x1F;
    asked.attributes.path_mtu = 1;
    asked.attributes.max_rd_atomic = asked.attributes.max_dest_rd_atomic = 2;
    asked.attributes.rnr_retry = static_cast<std::uint8_t>(below(8));
    asked.attributes.av.is_global = 1;
    asked.attributes.av.dgid = core_->address().ip;
    const MemoryPiece pieces[] = {{below(8) * 4096, 65536}, {below(8) * 4096, 65536}};
    const bool has_pieces = kind == CallKind::add_region || kind == CallKind::change_region;
    if (kind == CallKind::pair_facts) {
      for (asked.from = 0; asked.from < 3; ++asked.from) {
        asked.attributes.state = static_cast<std::uint8_t>(asked.from + 1);
        asked.attributes.dest_qp_num = pair.number;
        call(CallKind::change_pair, asked);
      }
    }
    call(kind, asked, std::span(pieces).first(has_pieces ? 1 + below(2) : 0));
    serve();
    const PairAnswer& answer = page().replies[0].answer;
    if (answer.status != 0) continue;
    if (kind == CallKind::open_pair) pairs.push_back(answer);
    if (kind == CallKind::open_queue) queues.push_back(answer);
    if (kind == CallKind::add_region) keys.push_back(answer.key);
    if (kind == CallKind::add_window) windows.push_back(answer.key);
  }
  EXPECT_GT(pairs.size(), 20u);
  EXPECT_GT(windows.size(), 20u);
  EXPECT_GT(successes_, 5u);
}

// Opening a queue pair with large queues takes milliseconds, so a call ends a turn.
TEST_F(TurnsOfPairs, EndWithACall) {
  for (int i = 0; i < 3; ++i) call(CallKind::open_pair, HostilePairs::pair_call());
  for (std::uint64_t turn = 1; turn <= 3; ++turn) {
    EXPECT_TRUE(pairs_->take_requests());
    EXPECT_EQ(served(), turn);
  }
  EXPECT_FALSE(pairs_->take_requests());
}

TEST_F(TurnsOfPairs, DeliverANoticeAfterAllCompletionsBeforeIt) {
  constexpr int kSends = 100;  // more than a turn delivers
  PairCall asked = HostilePairs::pair_call();
  asked.depth = asked.pieces = 1;
  call(CallKind::open_queue, asked);
  serve();
  const PairAnswer queue = page().replies[0].answer;
  asked.max_send_wr = 128;
  asked.signals_all = asked.shares_receives = 1;
  asked.queue = queue.object;
  asked.queue_generation = queue.generation;
  const PairAnswer pair = connected_to_itself(asked);  // without receives, so its sends wait
  for (int i = 0; i < kSends; ++i) {
    post({.object = pair.object,
          .generation = pair.generation,
          .kind = std::to_underlying(Post::post_send),
          .opcode = std::to_underlying(verbs::SendOpcode::send)},
         {});
  }
  change(asked, verbs::QpState::err);
  while (pairs_->take_requests()) {
  }
  int completions = 0;
  for (const auto end = base::MonotonicClock::now() + kPatienceWithPairs; base::MonotonicClock::now() < end;) {
    core_->progress();
    pairs_->give_events();
    while (const std::byte* const element = events_->get()) {
      PairNews news;
      std::memcpy(&news, element, sizeof news);
      if ((news.retires & PairNews::kIsNotice) == 0) {
        EXPECT_EQ(news.completion.status, verbs::WcStatus::wr_flush_err);
        ++completions;
        continue;
      }
      EXPECT_EQ(news.completion.byte_len, std::to_underlying(verbs::AsyncEventType::qp_last_wqe_reached));
      EXPECT_EQ(completions, kSends);
      return;
    }
  }
  ADD_FAILURE() << "no notice";
}

// An application that exits waits for this, so that what it has posted is not lost.
TEST_F(TurnsOfPairs, LingerUntilAllSendsAreComplete) {
  PairCall asked = HostilePairs::pair_call();
  asked.signals_all = 1;
  const PairAnswer pair = connected_to_itself(asked);
  const PairRequest request{.object = pair.object,
                            .generation = pair.generation,
                            .kind = std::to_underlying(Post::post_send),
                            .opcode = std::to_underlying(verbs::SendOpcode::send)};
  post(request, {});
  PairCall linger{.number = 77};
  call(CallKind::linger, linger);
  for (int i = 0; i < 100; ++i) serve();
  EXPECT_EQ(page().lingered.load(), 0u) << "the send waits for a receive";
  PairRequest receive = request;
  receive.kind = std::to_underlying(Post::post_receive);
  receive.opcode = 0;
  post(receive, {});
  for (const auto end = base::MonotonicClock::now() + kPatienceWithPairs;
       page().lingered.load() == 0 && base::MonotonicClock::now() < end;)
    serve();
  EXPECT_EQ(page().lingered.load(), 77u);
  EXPECT_EQ(successes_, 2u);
}

TEST_F(TurnsOfPairs, EndWithTheirBytes) {
  call(CallKind::open_pair, HostilePairs::pair_call());
  ASSERT_TRUE(pairs_->take_requests());
  const verbs::Sge piece{.addr = 0, .length = 1 << 19, .lkey = 1};
  PairRequest request{.object = page().replies[0].answer.object,
                      .generation = page().replies[0].answer.generation,
                      .kind = std::to_underlying(Post::post_send),
                      .opcode = std::to_underlying(verbs::SendOpcode::write),
                      .pieces = 1};
  std::memcpy(request.begin.data(), &piece, sizeof piece);
  for (int i = 0; i < 3; ++i) put(&request, sizeof request);
  ASSERT_TRUE(pairs_->take_requests());
  EXPECT_EQ(served(), 3u) << "the call, and two of 512 KiB";
}

}  // namespace
}  // namespace fairlead::host
