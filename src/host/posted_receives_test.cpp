// Receives that are in the ring, but were taken in no turn, when a message arrives for them.

#include "host/posted_receives.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <vector>

#include "host/pair_turns_for_tests.hpp"

namespace fairlead::host {
namespace {

using testing::ElementsAre;
using verbs::QpState;
using verbs::QpType;

constexpr std::uint32_t kQueueKey = 5;

/// Messages come from a queue pair of the same engine that belongs to nobody's turns.
class ReceivesOfPairs : public TurnsOfPairs {
 protected:
  void SetUp() override {
    TurnsOfPairs::SetUp();
    notices_ = api().open_notices().value();
    stream_ = api().open_completions({.capacity = 64, .events = notices_}).value();
    PairCall region{.length = 65536, .access = verbs::access::local_write, .domain = 1};
    const MemoryPiece piece{0, 65536};
    call(CallKind::add_region, region, {&piece, 1});
    serve();
    key_ = page().replies[0].answer.key;
  }
  void TearDown() override {
    api().close_pair(sender_.handle);
    api().close_completions(stream_);
    api().close_notices(notices_);
    TurnsOfPairs::TearDown();
  }
  qp::PairCore& api() { return *core_->pairs(); }

  /// Opens the sender.
  void begin(QpType type) {
    sender_ = api()
                  .open_pair({.type = type,
                              .capacity = {.max_send_wr = 8, .max_recv_wr = 1},
                              .signals_all = true,
                              .domain = 1,
                              .send_stream = stream_,
                              .receive_stream = stream_,
                              .events = notices_})
                  .value();
    type_ = type;
  }
  /// Returns a queue pair of the application for messages from the sender, in RTS after `asked` was sent.
  PairAnswer receiver(PairCall& asked) {
    asked.type = std::to_underlying(type_);
    const PairAnswer pair = opened(asked);
    asked.attributes.qkey = kQueueKey;
    asked.attributes.dest_qp_num = sender_.number;
    move_to_rts(asked);
    return pair;
  }
  PairAnswer receiver() {
    PairCall asked = HostilePairs::pair_call();
    return receiver(asked);
  }
  /// Connects the sender.
  void connect(const PairAnswer& to) {
    verbs::QpAttributes attributes{.qkey = kQueueKey, .dest_qp_num = to.number};
    attributes.av = vector();
    for (const auto from : {QpState::reset, QpState::init, QpState::rtr}) {
      attributes.state = static_cast<QpState>(std::to_underlying(from) + 1);
      ASSERT_EQ(api().change_pair(sender_.handle, from, attributes), Status::ok);
    }
  }
  void post_receive(const PairAnswer& to, std::uint64_t id, Post kind = Post::post_receive) {
    const verbs::Sge piece{.addr = 0, .length = 64, .lkey = key_};
    post({.id = id, .object = to.object, .generation = to.generation, .kind = std::to_underlying(kind), .pieces = 1},
         std::as_bytes(std::span(&piece, 1)));
  }
  /// Sends an empty message, which is delivered before this returns.
  void send(const PairAnswer& to) {
    const verbs::AddressVector here = vector();
    const verbs::SendRequest request{.to = &here, .remote_qpn = to.number, .remote_qkey = kQueueKey};
    std::size_t taken = 0;
    ASSERT_EQ(api().post_send(sender_.handle, {&request, 1}, taken), 0);
    hear();
  }
  verbs::AddressVector vector() const { return {.dgid = core_->address().ip, .is_global = true}; }

  qp::NoticeStream* notices_ = nullptr;
  qp::CompletionStream* stream_ = nullptr;
  qp::OpenPair sender_;
  QpType type_ = QpType::ud;
  std::uint32_t key_ = 0;
};

TEST_F(ReceivesOfPairs, AreFoundByADatagram) {
  begin(QpType::ud);
  const PairAnswer pair = receiver();
  connect(pair);
  send(pair);
  post_receive(pair, 1);
  post_receive(pair, 2);
  send(pair);
  EXPECT_THAT(received_, ElementsAre(1)) << "the first datagram was dropped";
  EXPECT_EQ(receives_->count(), 1u) << "no more are taken than are needed";
  send(pair);
  send(pair);
  EXPECT_THAT(received_, ElementsAre(1, 2));
}

TEST_F(ReceivesOfPairs, AreFoundByAMessageThatIsNotRepeated) {
  for (const QpType type : {QpType::uc, QpType::rc}) {
    SCOPED_TRACE(std::to_underlying(type));
    begin(type);
    const PairAnswer pair = receiver();
    connect(pair);  // rnr_retry is 0
    post_receive(pair, 1);
    send(pair);
    EXPECT_THAT(received_, ElementsAre(1));
    received_.clear();
    verbs::WorkCompletion sent;
    ASSERT_EQ(stream_->take(&sent, 1, api().accounts()), 1u);
    EXPECT_EQ(sent.status, verbs::WcStatus::success);
    if (type == QpType::uc) api().close_pair(sender_.handle);
  }
}

TEST_F(ReceivesOfPairs, AreFoundInASharedQueue) {
  begin(QpType::ud);
  PairCall asked = HostilePairs::pair_call();
  asked.depth = 4;
  asked.pieces = 1;
  call(CallKind::open_queue, asked);
  serve();
  const PairAnswer queue = page().replies[0].answer;
  asked.shares_receives = 1;
  asked.queue = queue.object;
  asked.queue_generation = queue.generation;
  const PairAnswer pair = receiver(asked);
  connect(pair);
  for (std::uint64_t id = 1; id <= 4; ++id) post_receive(queue, id, Post::post_to_queue);
  send(pair);
  send(pair);
  EXPECT_THAT(received_, ElementsAre(1, 2));
  EXPECT_EQ(page().taken[queue.object].load(), 2u);
  page().taken[queue.object] = 0;
  asked.object = queue.object;
  asked.generation = queue.generation;
  call(CallKind::queue_facts, asked);
  serve();
  EXPECT_EQ(page().replies[0].answer.posted, 2u) << "those that were in the ring are posted";
  EXPECT_EQ(page().taken[queue.object].load(), 2u);
}

// The engine delivers the send within the turn that takes it, and looks for a receive meanwhile.
TEST_F(ReceivesOfPairs, AreFoundInTheTurnThatSends) {
  begin(QpType::ud);
  PairCall asked = HostilePairs::pair_call();
  asked.max_recv_wr = PostedReceives::kReceivesInTurn;
  asked.max_send_wr = 4;
  const PairAnswer full = receiver(asked), empty = receiver();
  for (std::uint32_t i = 0; i < PostedReceives::kReceivesInTurn; ++i) post_receive(full, i);
  post_receive(empty, 1000);
  PairRequest request{.object = full.object,
                      .generation = full.generation,
                      .kind = std::to_underlying(Post::post_send),
                      .opcode = std::to_underlying(verbs::SendOpcode::send)};
  const DatagramWords words{to_plain(vector()), empty.number, kQueueKey};
  std::memcpy(request.words.data(), &words, sizeof words);
  post(request, {});
  EXPECT_TRUE(pairs_->take_requests());
  hear();
  EXPECT_THAT(received_, ElementsAre(1000));
}

// A program may reset a queue pair behind its receives. The next incarnation must not get them.
TEST_F(ReceivesOfPairs, EndWithAResetThatFollowsThem) {
  constexpr std::uint32_t kReceives = 8 * PostedReceives::kReceivesInTurn;
  begin(QpType::ud);
  PairCall asked = HostilePairs::pair_call();
  asked.max_recv_wr = kReceives;
  const PairAnswer pair = receiver(asked);
  connect(pair);
  for (std::uint32_t i = 0; i < kReceives; ++i) post_receive(pair, i);
  change(asked, QpState::reset);
  EXPECT_TRUE(pairs_->take_requests());
  hear();
  for (const auto state : {QpState::init, QpState::rtr, QpState::rts}) change(asked, state);
  serve();
  EXPECT_EQ(page().replies[0].answer.status, 0u) << page().replies[0].answer.text.data();
  send(pair);
  EXPECT_THAT(received_, testing::IsEmpty());
  post_receive(pair, 1000);
  send(pair);
  EXPECT_THAT(received_, ElementsAre(1000));
}

// Otherwise the application and a stranger together could keep the engine busy.
TEST_F(ReceivesOfPairs, AreSoughtAmongFewInVain) {
  constexpr std::uint64_t kVain = PostedReceives::kInVainMost + PostedReceives::kReceivesInTurn + 1;
  begin(QpType::ud);
  const PairAnswer pair = receiver();
  connect(pair);
  PairAnswer closed = pair;
  ++closed.generation;
  for (std::uint64_t i = 0; i < kVain; ++i) post_receive(closed, i);
  post_receive(pair, 1000);
  for (int i = 0; i < 3; ++i) send(pair);
  EXPECT_EQ(receives_->count(), kVain + 1 - PostedReceives::kInVainMost);
  EXPECT_TRUE(pairs_->take_requests());
  send(pair);
  EXPECT_THAT(received_, ElementsAre(1000)) << "a turn permits another search";
}

// Queue pairs of other applications and of the daemon are on the same engine.
TEST_F(ReceivesOfPairs, AreNotPostedToOthers) {
  begin(QpType::ud);
  const PairAnswer pair = receiver();
  connect(pair);
  PairAnswer foreign;
  foreign.object = sender_.handle.index;
  foreign.generation = sender_.handle.generation;
  post_receive(foreign, 1);
  EXPECT_TRUE(pairs_->take_requests());
  EXPECT_TRUE(pairs_->fault().empty());
  const verbs::ReceiveRequest own{.id = 2};
  std::size_t taken = 0;
  EXPECT_EQ(api().post_receive(sender_.handle, {&own, 1}, taken), 0) << "it has room for one";
}

TEST_F(ReceivesOfPairs, ThatNoLibraryPostsEndTheAttachment) {
  begin(QpType::ud);
  PairCall asked = HostilePairs::pair_call();
  const PairAnswer pair = receiver(asked);
  connect(pair);
  receives_->put({.object = pair.object, .generation = pair.generation, .kind = std::to_underlying(Post::post_send)},
                 {}, [] { return false; });
  post_receive(pair, 1);
  send(pair);
  EXPECT_THAT(received_, testing::IsEmpty()) << "nothing more is taken";
  pairs_->take_requests();
  EXPECT_FALSE(pairs_->fault().empty());
}

}  // namespace
}  // namespace fairlead::host
