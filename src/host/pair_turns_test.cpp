// Turns of an application's queue pairs, one at a time: calls and posts in any order, and where a turn ends.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <type_traits>
#include <vector>

#include "host/pair_turns_for_tests.hpp"
#include "qp/opcode_traits.hpp"
#include "tests/environment.hpp"

namespace fairlead::host {
namespace {

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
  const std::uint64_t each = requests_->count() / 3;
  for (std::uint64_t left = 3; left-- > 0;) {
    EXPECT_TRUE(pairs_->take_requests());
    EXPECT_EQ(requests_->count(), left * each);
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

// The engine's lock is taken for each look at a queue pair.
TEST_F(TurnsOfPairs, LookAtAFewQueuePairsOfALinger) {
  constexpr std::uint32_t kPairs = 2 * ServedPairs::kLooksInTurn + 1;
  for (std::uint32_t i = 0; i < kPairs; ++i) {
    call(CallKind::open_pair, HostilePairs::pair_call());
    ASSERT_TRUE(pairs_->take_requests());
  }
  call(CallKind::linger, {.number = 77});
  ASSERT_TRUE(pairs_->take_requests());
  for (int turns = 0; turns < 2; ++turns) {
    pairs_->give_events();
    EXPECT_EQ(page().lingered.load(), 0u);
  }
  pairs_->give_events();
  EXPECT_EQ(page().lingered.load(), 77u);
}

TEST_F(TurnsOfPairs, LookAtAFewCallsThatWait) {
  constexpr std::uint32_t kPairs = 2 * ApplicationPairs::kEndingsInTurn + 1;
  std::vector<PairCall> opened;
  for (std::uint32_t i = 0; i < kPairs; ++i) {
    PairCall asked = HostilePairs::pair_call();
    call(CallKind::open_pair, asked);
    ASSERT_TRUE(pairs_->take_requests());
    asked.object = page().replies[0].answer.object;
    asked.generation = page().replies[0].answer.generation;
    opened.push_back(asked);
  }
  for (const PairCall& asked : opened) {
    call(CallKind::close_pair, asked);
    ASSERT_TRUE(pairs_->take_requests());
  }
  for (std::uint32_t left : {kPairs - 64, kPairs - 128, 0U}) {
    EXPECT_TRUE(pairs_->give_events());
    EXPECT_EQ(pairs_->count(), left);
  }
}

// Completions that were taken for the next program may be of an earlier life of a queue pair.
TEST_F(TurnsOfPairs, DeliverNoHeldCompletionAfterAReset) {
  PairCall asked = HostilePairs::pair_call();
  asked.signals_all = 1;
  asked.incarnation = 1;
  const PairAnswer pair = connected_to_itself(asked);
  const PairRequest send{.object = pair.object,
                         .generation = pair.generation,
                         .kind = std::to_underlying(Post::post_send),
                         .opcode = std::to_underlying(verbs::SendOpcode::send)};
  PairRequest receive = send;
  receive.kind = std::to_underlying(Post::post_receive);
  receive.opcode = 0;
  const auto hold_completions_of_a_send = [&] {
    post(receive, {});
    post(send, {});
    while (pairs_->take_requests()) {
    }
    std::size_t held = 0;
    for (const auto end = base::MonotonicClock::now() + kPatienceWithPairs;
         held < 2 && base::MonotonicClock::now() < end;) {
      core_->progress();
      const auto state = pairs_->save();
      ASSERT_TRUE(state.has_value()) << state.error().message;
      held = state->completions.size();
    }
    ASSERT_EQ(held, 2u);
  };
  hold_completions_of_a_send();
  hear();
  EXPECT_EQ(successes_, 2u);
  hold_completions_of_a_send();
  asked.incarnation = 2;
  change(asked, verbs::QpState::reset);
  while (pairs_->take_requests()) {
  }
  hear();
  EXPECT_EQ(successes_, 2u) << "of its first life";
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
  for (int i = 0; i < 3; ++i) post(request, std::as_bytes(std::span(&piece, 1)));
  ASSERT_TRUE(pairs_->take_requests());
  EXPECT_EQ(requests_->count(), 1u) << "a turn has two of 512 KiB";
}

TEST_F(TurnsOfPairs, AreShortBesideOtherApplications) {
  call(CallKind::open_pair, HostilePairs::pair_call());
  ASSERT_TRUE(pairs_->take_requests());
  const PairRequest request{.object = page().replies[0].answer.object,
                            .generation = page().replies[0].answer.generation,
                            .kind = std::to_underlying(Post::post_send),
                            .opcode = std::to_underlying(verbs::SendOpcode::write),
                            .pieces = 1};
  const auto left_of_six = [&](std::uint32_t bytes, bool is_alone) {
    const verbs::Sge piece{.addr = 0, .length = bytes, .lkey = 1};
    for (int i = 0; i < 6; ++i) post(request, std::as_bytes(std::span(&piece, 1)));
    EXPECT_TRUE(pairs_->take_requests(is_alone));
    const std::uint64_t left = requests_->count();
    while (pairs_->take_requests()) {
    }
    return left;
  };
  EXPECT_EQ(left_of_six(8, false), 2u);
  EXPECT_EQ(left_of_six(32 << 10, false), 4u);
  EXPECT_EQ(left_of_six(8, true), 0u);
}

}  // namespace
}  // namespace fairlead::host
