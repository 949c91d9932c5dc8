// Requests between two queue pairs of one engine. The thread that posts them or makes a pass copies them, up to a limit
// for each turn.

#include <cstring>

#include "qp/pair_world_for_tests.hpp"

namespace fairlead::qp {
namespace {

TEST(LocalTurn, EndsAndTheRestIsCopiedInLaterPasses) {
  PairWorld world(1, {});
  PairEngine& host = world.hosts[0];
  const PairWorld::End a = world.open(0, verbs::QpType::rc), b = world.open(0, verbs::QpType::rc);
  world.connect(0, a, b, 1, 1, "10.0.0.1");
  world.connect(0, b, a, 1, 1, "10.0.0.1");
  constexpr std::uint32_t kBytes = 1 << 20;
  constexpr std::size_t kInTurn = CopyTurn::kBytes / kBytes, kPosted = 2 * kInTurn + 1;
  const verbs::Sge whole = host.sge(0, kBytes);
  const verbs::SendRequest request{.sges = {&whole, 1},
                                   .opcode = verbs::SendOpcode::write,
                                   .flags = verbs::send_flags::signaled,
                                   .rkey = host.key,
                                   .remote_addr = host.address(0)};
  const std::vector<verbs::SendRequest> requests(kPosted, request);
  std::size_t taken = 0;
  ASSERT_EQ(host.pairs().post_send(a.handle, requests, taken, world.now), 0);
  EXPECT_EQ(host.completions().size(), kInTurn);
  for (const std::size_t more : {kInTurn, std::size_t{1}}) {
    EXPECT_EQ(host.engine->next_deadline(), base::Instant{}) << "nobody sleeps over it";
    host.engine->progress(world.now);
    EXPECT_EQ(host.completions().size(), more);
  }
  host.engine->progress(world.now);
  EXPECT_GT(host.engine->next_deadline(), world.now);
}

// One request that is longer than a turn.
class LongRequest : public testing::Test {
 protected:
  static constexpr std::uint32_t kPage = 4096;
  static constexpr std::uint32_t kBytes = 2 * CopyTurn::kBytes + kPage;
  static constexpr std::byte kSent{0x5A};

  LongRequest() {
    from_key_ = add(from_);
    to_key_ = add(to_);
    world_.connect(0, a_, b_, 1, 1, "10.0.0.1");
    world_.connect(0, b_, a_, 1, 1, "10.0.0.1");
  }
  std::uint32_t add(std::vector<std::byte>& memory) {
    return host().pairs().regions().add({.base = memory.data(),
                                         .length = memory.size(),
                                         .iova = reinterpret_cast<std::uintptr_t>(memory.data()),
                                         .access = PairWorld::kRights,
                                         .domain = 1});
  }
  PairEngine& host() { return world_.hosts[0]; }
  static std::uint64_t at(const std::vector<std::byte>& memory) {
    return reinterpret_cast<std::uintptr_t>(memory.data());
  }
  void post(verbs::SendOpcode opcode) { post(a_, opcode); }
  void post(const PairWorld::End& from, verbs::SendOpcode opcode) {
    const bool is_read = opcode == verbs::SendOpcode::read;
    const verbs::Sge whole = is_read ? verbs::Sge{at(to_), kBytes, to_key_} : verbs::Sge{at(from_), kBytes, from_key_};
    const verbs::SendRequest request{.sges = {&whole, 1},
                                     .opcode = opcode,
                                     .flags = verbs::send_flags::signaled,
                                     .rkey = is_read ? from_key_ : to_key_,
                                     .remote_addr = is_read ? at(from_) : at(to_)};
    std::size_t taken = 0;
    ASSERT_EQ(host().pairs().post_send(from.handle, {&request, 1}, taken, world_.now), 0);
  }
  void post_receive() {
    const verbs::Sge whole{at(to_), kBytes, to_key_};
    const verbs::ReceiveRequest request{.id = 7, .sges = {&whole, 1}};
    std::size_t taken = 0;
    ASSERT_EQ(host().pairs().post_receive(b_.handle, {&request, 1}, taken), 0);
  }
  /// By the last bytes of pages.
  std::uint64_t copied() const {
    std::uint64_t bytes = 0;
    for (std::size_t page = 0; page < kBytes; page += kPage) bytes += to_[page + kPage - 1] == kSent ? kPage : 0;
    return bytes;
  }
  bool pass() { return host().engine->progress(world_.now); }
  /// No turn copies more than it may, and each copies something, until all is there.
  void expect_turns() {
    std::uint64_t before = 0;
    int turns = 1;
    for (; before != kBytes && turns < 100; ++turns, pass()) {
      const std::uint64_t now = copied();
      EXPECT_LE(now - before, CopyTurn::kBytes);
      EXPECT_GT(now, before);
      before = now;
      if (now != kBytes) {
        EXPECT_TRUE(host().completions().empty());
        EXPECT_EQ(host().engine->next_deadline(), base::Instant{}) << "nobody sleeps over it";
      }
    }
    EXPECT_EQ(before, kBytes);
  }

  PairWorld world_{1, {}};
  std::vector<std::byte> from_ = std::vector(kBytes, kSent), to_ = std::vector<std::byte>(kBytes);
  std::uint32_t from_key_ = 0, to_key_ = 0;
  PairWorld::End a_ = world_.open(0, verbs::QpType::rc), b_ = world_.open(0, verbs::QpType::rc);
};

TEST_F(LongRequest, TakesAsManyTurnsAsItNeeds) {
  for (const auto opcode : {verbs::SendOpcode::write, verbs::SendOpcode::read, verbs::SendOpcode::send}) {
    std::memset(to_.data(), 0, to_.size());
    if (opcode == verbs::SendOpcode::send) post_receive();
    post(opcode);
    expect_turns();
    const auto done = host().completions();
    ASSERT_EQ(done.size(), opcode == verbs::SendOpcode::send ? 2U : 1U);
    for (const auto& each : done) EXPECT_EQ(each.status, verbs::WcStatus::success);
    for (const auto& each : done) EXPECT_EQ(each.byte_len, kBytes);
    host().pairs().check();
  }
}

// Whoever posts something short, be it to the same queue pair, does not copy for others.
TEST_F(LongRequest, GoesOnInPassesAlone) {
  const PairWorld::End c = world_.open(0, verbs::QpType::rc), d = world_.open(0, verbs::QpType::rc);
  world_.connect(0, c, d, 1, 1, "10.0.0.1");
  world_.connect(0, d, c, 1, 1, "10.0.0.1");
  post(verbs::SendOpcode::write);
  const verbs::Sge word = host().sge(0, 8);
  const verbs::SendRequest request{.id = 5,
                                   .sges = {&word, 1},
                                   .opcode = verbs::SendOpcode::write,
                                   .flags = verbs::send_flags::signaled,
                                   .rkey = host().key,
                                   .remote_addr = host().address(64)};
  std::size_t taken = 0;
  for (int i = 0; i < 8; ++i) ASSERT_EQ(host().pairs().post_send(a_.handle, {&request, 1}, taken, world_.now), 0);
  EXPECT_EQ(copied(), CopyTurn::kBytes);
  ASSERT_EQ(host().pairs().post_send(c.handle, {&request, 1}, taken, world_.now), 0);
  EXPECT_EQ(host().completions().size(), 1U) << "of the other queue pair: at once";
  EXPECT_EQ(copied(), CopyTurn::kBytes);
  EXPECT_EQ(host().engine->next_deadline(), base::Instant{}) << "the long one still waits for its turn";
  for (int i = 0; i < 10; ++i) pass();
  EXPECT_EQ(copied(), kBytes);
  EXPECT_EQ(host().completions().size(), 9U);
}

TEST_F(LongRequest, EndsWithWhateverItNeeds) {
  post(verbs::SendOpcode::write);
  ASSERT_TRUE(host().pairs().regions().remove(to_key_));
  for (int i = 0; i < 10; ++i) pass();
  EXPECT_EQ(copied(), CopyTurn::kBytes);
  const auto done = host().completions();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].status, verbs::WcStatus::rem_access_err);
  host().pairs().check();
}

TEST_F(LongRequest, IsBroughtToItsEndByAQueueThatIsDrained) {
  post(verbs::SendOpcode::write);
  verbs::QpAttributes attributes = host().pairs().pair_facts(a_.handle).attributes;
  attributes.state = verbs::QpState::sqd;
  ASSERT_EQ(host().pairs().change_pair(a_.handle, verbs::QpState::rts, attributes, world_.now), Status::ok);
  EXPECT_TRUE(host().pairs().pair_facts(a_.handle).attributes.is_sq_draining);
  for (int i = 0; i < 10; ++i) pass();
  EXPECT_FALSE(host().pairs().pair_facts(a_.handle).attributes.is_sq_draining);
  EXPECT_EQ(copied(), kBytes);
  EXPECT_EQ(host().completions().size(), 1U);
}

TEST_F(LongRequest, EndsWithEitherQueuePair) {
  for (const bool is_target : {true, false}) {
    const PairWorld::End c = world_.open(0, verbs::QpType::rc), d = world_.open(0, verbs::QpType::rc);
    world_.connect(0, c, d, 1, 1, "10.0.0.1");
    world_.connect(0, d, c, 1, 1, "10.0.0.1");
    std::memset(to_.data(), 0, to_.size());
    post(c, verbs::SendOpcode::write);
    const PairHandle gone = is_target ? d.handle : c.handle;
    host().pairs().begin_close(gone, world_.now);
    ASSERT_TRUE(host().pairs().is_quiet(gone));
    host().pairs().free_pair(gone);
    EXPECT_EQ(host().engine->next_deadline() == base::Instant{}, is_target) << "what is gone awaits no turn";
    for (int i = 0; i < 10; ++i) pass();
    EXPECT_EQ(copied(), CopyTurn::kBytes);
    EXPECT_TRUE(host().completions().empty());
    EXPECT_GT(host().engine->next_deadline(), world_.now);
    host().pairs().check();
  }
}

TEST_F(LongRequest, BeginsAnewWhenTheOtherEndHas) {
  post_receive();
  post(verbs::SendOpcode::send);
  // Both ends: what was copied belongs to neither any more.
  for (const PairWorld::End& end : {a_, b_}) {
    verbs::QpAttributes attributes;
    attributes.state = verbs::QpState::reset;
    ASSERT_EQ(host().pairs().change_pair(end.handle, verbs::QpState::rts, attributes, world_.now), Status::ok);
  }
  world_.connect(0, a_, b_, 1, 1, "10.0.0.1");
  world_.connect(0, b_, a_, 1, 1, "10.0.0.1");
  for (int i = 0; i < 10; ++i) pass();
  EXPECT_EQ(copied(), CopyTurn::kBytes);
  std::memset(to_.data(), 0, to_.size());
  post(verbs::SendOpcode::write);
  for (int i = 0; i < 10; ++i) pass();
  EXPECT_EQ(copied(), kBytes);
  const auto done = host().completions();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].opcode, verbs::WcOpcode::write);
  EXPECT_EQ(done[0].status, verbs::WcStatus::success);
}

}  // namespace
}  // namespace fairlead::qp
