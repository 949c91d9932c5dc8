// Queue pairs of a host engine that is stopped for a while, as by SIGSTOP. It has not ended: it may still use memory.

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <fairlead/log.hpp>

#include "embedded/attach.hpp"
#include "host/host_core.hpp"
#include "host/stoppable_host_for_tests.hpp"
#include "tests/environment.hpp"

namespace fairlead::host {
namespace {

using verbs::QpState;

constexpr auto kPatienceWithStopped = std::chrono::seconds(20);  // ends a failing test only
constexpr auto kListTakes = std::chrono::seconds(1);             // to be posted, where it need not wait

class StoppedHost : public ::testing::Test {
 protected:
  void SetUp() override {
    core_ = HostCore::attach(host_.file(), base::SocketAddress::from_ip("127.0.0.1", 0).value(), {}).value();
    ASSERT_TRUE(core_->open_pairs().has_value());
    pairs_ = core_->pairs();
    notices_ = pairs_->open_notices().value();
  }
  qp::CompletionStream* stream_of(std::uint32_t capacity) {
    return pairs_->open_completions({.capacity = capacity, .channel = notices_, .events = notices_}).value();
  }
  /// Opens a queue pair that is connected to itself.
  qp::PairHandle pair_at(qp::CompletionStream* stream) {
    const auto opened = pairs_
                            ->open_pair({.capacity = {.max_send_wr = 4096, .max_recv_wr = 16},
                                         .signals_all = true,
                                         .domain = 1,
                                         .send_stream = stream,
                                         .receive_stream = stream,
                                         .events = notices_})
                            .value();
    verbs::QpAttributes wanted{.dest_qp_num = opened.number, .min_rnr_timer = 1, .timeout = 14, .rnr_retry = 7};
    wanted.av.is_global = true;
    wanted.av.dgid = core_->address().ip;
    for (const auto from : {QpState::reset, QpState::init, QpState::rtr}) {
      wanted.state = static_cast<QpState>(std::to_underlying(from) + 1);
      EXPECT_EQ(pairs_->change_pair(opened.handle, from, wanted), Status::ok);
    }
    return opened.handle;
  }
  void fail(qp::PairHandle pair) {
    EXPECT_EQ(pairs_->change_pair(pair, QpState::rts, {.state = QpState::err}), Status::ok);
  }
  template <typename HasCome>
  bool comes(HasCome&& has_come) {
    for (const auto end = base::MonotonicClock::now() + kPatienceWithStopped; !has_come(); pairs_->progress())
      if (base::MonotonicClock::now() > end) return false;
    return true;
  }

  StoppableHost host_;
  std::shared_ptr<HostCore> core_;
  qp::PairCore* pairs_ = nullptr;
  qp::NoticeStream* notices_ = nullptr;
};

// The queue pair has no receives, so its sends stay where they are.
TEST_F(StoppedHost, MakesPostsAndCallsWaitForRoom) {
  constexpr std::size_t kList = kPairRequestsMax / 2 + 100;  // two do not fit
  const auto memory = pairs_->allocate(4096);
  const std::uint32_t key = pairs_->add_region({.base = memory.data(), .length = 4096, .domain = 1}).value();
  qp::CompletionStream* const stream = stream_of(8192);
  const qp::PairHandle pair = pair_at(stream);
  const std::vector<verbs::SendRequest> list(kList);
  host_.stop();
  ASSERT_EQ(pairs_->post_send_all(pair, list), 0);
  std::atomic<int> waiting{0};
  std::atomic<bool> is_posted{false};
  std::thread poster([&] {
    ++waiting;
    EXPECT_EQ(pairs_->post_send_all(pair, list), 0);
    is_posted = true;
  });
  std::thread remover([&] {
    ++waiting;
    EXPECT_EQ(pairs_->remove_region(key), Status::ok);
    EXPECT_FALSE(host_.is_stopped()) << "it may still write to the memory";
  });
  while (waiting < 2) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(tests::is_full_run() ? 5000 : 20));
  pairs_->arm(stream, qp::CompletionStream::Armed::any);  // nobody holds the lock meanwhile
  EXPECT_FALSE(is_posted);
  host_.go_on();
  poster.join();
  remover.join();
  fail(pair);
  EXPECT_TRUE(comes([&] { return stream->count() == 2 * kList; })) << stream->count();
  pairs_->close_pair(pair);
}

// Nobody should have to guess what a call waits for.
TEST_F(StoppedHost, IsNamedByACallThatWaitsForIt) {
  std::atomic<int> lines{0};
  set_log_handler([&](const LogLine& line) { lines += line.text.starts_with("fairleadd has not answered") ? 1 : 0; });
  const engine::PortHandle port = core_->open_port(666).value();
  ASSERT_EQ(core_->reserve_events(port, 1), Status::ok);
  std::vector<std::byte> memory(64);
  const iovec piece{memory.data(), memory.size()};
  host_.stop();
  std::thread poster([&] {
    engine::OperationHandle operation;
    EXPECT_EQ(core_->post_receive(port, {.memory = {&piece, 1}, .size_min = 1, .messages_max = 1}, operation),
              Status::ok);
  });
  EXPECT_TRUE(comes([&] { return lines > 0; }));
  host_.go_on();
  poster.join();
  EXPECT_EQ(lines, 1) << "once for each call";
  core_->close_port(port);
  set_log_handler({});
}

/// Posts receives in a thread of its own, which a host engine that is stopped must not make wait.
template <typename Post>
void post_without_it(StoppableHost& host, Post&& post) {
  std::atomic<bool> is_posted{false};
  std::thread poster([&] {
    post();
    is_posted = true;
  });
  const auto end = base::MonotonicClock::now() + kPatienceWithStopped;
  while (!is_posted && base::MonotonicClock::now() < end) std::this_thread::yield();
  EXPECT_TRUE(is_posted);
  EXPECT_TRUE(host.is_stopped());
  if (!is_posted) host.go_on();
  poster.join();
}

TEST_F(StoppedHost, MakesNoReceiveWait) {
  constexpr std::uint32_t kReceives = 512;
  qp::CompletionStream* const stream = stream_of(2 * kReceives);
  const auto queue = pairs_->open_receive_queue({.depth = kReceives, .sges = 1, .domain = 1}).value();
  const auto pair = pairs_
                        ->open_pair({.type = verbs::QpType::ud,
                                     .capacity = {.max_send_wr = 1, .max_recv_wr = kReceives},
                                     .domain = 1,
                                     .send_stream = stream,
                                     .receive_stream = stream,
                                     .events = notices_})
                        .value();
  ASSERT_EQ(pairs_->change_pair(pair.handle, QpState::reset, {.state = QpState::init}), Status::ok);
  host_.stop();
  post_without_it(host_, [&] {
    const verbs::ReceiveRequest receive;
    std::size_t taken = 0;
    for (std::uint32_t i = 0; i < kReceives; ++i) {
      EXPECT_EQ(pairs_->post_receive(pair.handle, {&receive, 1}, taken), 0);
      EXPECT_EQ(pairs_->post_to_receive_queue(queue, {&receive, 1}, taken), 0);
    }
    EXPECT_EQ(pairs_->post_receive(pair.handle, {&receive, 1}, taken), ENOMEM);
  });
  host_.go_on();
  pairs_->close_pair(pair.handle);
  EXPECT_EQ(pairs_->receive_queue_facts(queue).posted, kReceives);
  EXPECT_EQ(pairs_->close_receive_queue(queue), Status::ok);
}

// The engine's thread gets the message meanwhile, and finds the receive. The sender does not repeat it.
TEST_F(StoppedHost, MissesNoReceive) {
  const auto sender = embedded::attach_embedded(base::SocketAddress::from_ip("127.0.0.1", 0).value(), {}).value();
  qp::PairCore& its = *sender->pairs();
  qp::NoticeStream* const its_notices = its.open_notices().value();
  qp::CompletionStream* const sent = its.open_completions({.capacity = 64, .events = its_notices}).value();
  qp::CompletionStream* const stream = stream_of(64);
  const auto open = [](qp::PairCore& at, qp::CompletionStream* to, qp::NoticeStream* events) {
    return at
        .open_pair({.capacity = {.max_send_wr = 4, .max_recv_wr = 4},
                    .signals_all = true,
                    .domain = 1,
                    .send_stream = to,
                    .receive_stream = to,
                    .events = events})
        .value();
  };
  const auto connect = [](qp::PairCore& at, const qp::OpenPair& pair, std::uint32_t number, const engine::Core& peer) {
    verbs::QpAttributes wanted{.dest_qp_num = number, .timeout = 0, .rnr_retry = 0};
    wanted.av.is_global = true;
    wanted.av.dgid = peer.address().ip;
    for (const auto from : {QpState::reset, QpState::init, QpState::rtr}) {
      wanted.state = static_cast<QpState>(std::to_underlying(from) + 1);
      EXPECT_EQ(at.change_pair(pair.handle, from, wanted), Status::ok);
    }
  };
  const qp::OpenPair from = open(its, sent, its_notices), to = open(*pairs_, stream, notices_);
  connect(its, from, to.number, *core_);
  connect(*pairs_, to, from.number, *sender);
  host_.stop();
  std::size_t taken = 0;
  const verbs::ReceiveRequest receive{.id = 7};
  ASSERT_EQ(pairs_->post_receive(to.handle, {&receive, 1}, taken), 0);
  const verbs::SendRequest send;
  ASSERT_EQ(its.post_send(from.handle, {&send, 1}, taken), 0);
  verbs::WorkCompletion done{.status = verbs::WcStatus::general_err};
  const auto end = base::MonotonicClock::now() + kPatienceWithStopped;
  while (sent->take(&done, 1, its.accounts()) == 0 && base::MonotonicClock::now() < end) its.progress();
  EXPECT_EQ(done.status, verbs::WcStatus::success);
  EXPECT_TRUE(host_.is_stopped());
  host_.go_on();
  EXPECT_TRUE(comes([&] { return stream->count() == 1; }));
  its.close_pair(from.handle);
  pairs_->close_pair(to.handle);
  its.close_completions(sent);
  its.close_notices(its_notices);
}

TEST_F(StoppedHost, LearnsLaterWhichQueuePairHasFailed) {
  qp::CompletionStream *const narrow = stream_of(1), *const wide = stream_of(8192);
  const qp::PairHandle loses = pair_at(narrow), fills = pair_at(wide);
  std::size_t taken = 0;
  const std::vector<verbs::ReceiveRequest> receives(8);
  const std::vector<verbs::SendRequest> sends(8);
  // The completions wait in shared memory when the host engine stops. The last call returns after they have come.
  ASSERT_EQ(pairs_->post_receive(loses, receives, taken), 0);
  ASSERT_EQ(pairs_->post_send(loses, sends, taken), 0);
  for (int i = 0; i < 100; ++i) (void)pairs_->pair_facts(loses);
  host_.stop();
  const std::vector<verbs::SendRequest> list(kPairRequestsMax);
  // Usually the list fills the ring, and the report of the lost completions must wait. If the watcher has reported them
  // before, the list must wait instead, until the host engine goes on.
  std::atomic<bool> is_posted{false};
  std::thread poster([&] {
    EXPECT_EQ(pairs_->post_send_all(fills, list), 0);
    is_posted = true;
  });
  for (const auto end = base::MonotonicClock::now() + kListTakes; !is_posted && base::MonotonicClock::now() < end;)
    std::this_thread::yield();
  while (pairs_->progress()) {
  }
  host_.go_on();
  poster.join();
  EXPECT_TRUE(comes([&] { return pairs_->pair_facts(loses).attributes.state == QpState::err; }));
  fail(fills);
  EXPECT_TRUE(comes([&] { return wide->count() == kPairRequestsMax; })) << wide->count();
  pairs_->close_pair(loses);
  pairs_->close_pair(fills);
}

}  // namespace
}  // namespace fairlead::host
