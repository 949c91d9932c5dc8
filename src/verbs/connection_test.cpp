#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <thread>

#include "base/file_descriptor.hpp"
#include "verbs/pair_for_tests.hpp"

namespace fairlead::verbs {
namespace {

using namespace std::chrono_literals;

CompletionQueue quiet_queue(Side& side) {
  return *CompletionQueue::create(side.context, {.capacity = 16});
}

QueuePair pair_of(Side& side, const CompletionQueue& queue, QpType type = QpType::rc) {
  return *QueuePair::create(side.domain, {.type = type,
                                          .send_queue = &queue,
                                          .receive_queue = &queue,
                                          .shared_receive = nullptr,
                                          .capacity = {.max_send_wr = 8, .max_recv_wr = 8}});
}

Invitation some_invitation() {
  return {.pair = {.gid = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, .number = 0x123456},
          .memory = {.address = 0x0102'0304'0506'0708, .length = 1ULL << 40, .rkey = 0xA0B0C0D0}};
}

TEST(Invitation, IsTheSameAfterItsWayAsBytes) {
  const auto bytes = some_invitation().to_bytes();
  const auto back = Invitation::from_bytes(bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, some_invitation());
  EXPECT_EQ(bytes[8 + 3], std::byte{0x56});  // network order on every machine
}

TEST(Invitation, IsRefusedIfItIsNone) {
  auto bytes = some_invitation().to_bytes();
  EXPECT_FALSE(Invitation::from_bytes(std::span(bytes).first(47)));
  EXPECT_FALSE(Invitation::from_bytes({}));
  bytes[7] = std::byte{2};  // the version
  EXPECT_FALSE(Invitation::from_bytes(bytes));
  Invitation of_nothing = some_invitation();
  of_nothing.pair.number = 0;
  const auto refused = Invitation::from_bytes(of_nothing.to_bytes());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().system_errno, EINVAL);
}

class ConnectedBy : public testing::TestWithParam<QpType> {};

// Two programs as users would write them: exchange, connect, write, wait.
TEST_P(ConnectedBy, TheirInvitations) {
  Side a(1, Road::udp), b(2, Road::udp);
  const CompletionQueue queue_a = quiet_queue(a), queue_b = quiet_queue(b);
  QueuePair pair_a = pair_of(a, queue_a, GetParam()), pair_b = pair_of(b, queue_b, GetParam());
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const base::FileDescriptor socket_a(ends[0]), socket_b(ends[1]);
  const auto meet = [](int socket, QueuePair& pair, const RemoteMemory& memory) {
    const auto bytes = exchange(socket, Invitation{pair.address(), memory}.to_bytes(), Instant::clock::now() + 20s);
    const auto theirs = Invitation::from_bytes(*bytes);
    EXPECT_TRUE(connect(pair, theirs->pair));
    return theirs->memory;
  };
  std::thread other([&] { meet(socket_b.get(), pair_b, b.region.remote(4096)); });
  const RemoteMemory there = meet(socket_a.get(), pair_a, {});
  other.join();
  EXPECT_EQ(there, b.region.remote(4096));
  EXPECT_EQ(there.length, Side::kMemory - 4096);

  a.fill(0, 100, 3);
  const Sge sge = a.region.sge(0, 100);
  ASSERT_EQ(pair_a.post_send({.id = 9,
                              .sges = {&sge, 1},
                              .opcode = SendOpcode::write,
                              .flags = send_flags::signaled,
                              .rkey = there.rkey,
                              .remote_addr = there.address}),
            0);
  WorkCompletion done;
  CompletionQueue waiting = queue_a;
  const auto count = waiting.wait({&done, 1}, Instant::clock::now() + 20s);
  ASSERT_TRUE(count) << count.error().message;
  EXPECT_EQ(*count, 1U);
  EXPECT_EQ(describe(done), "write 9 of queue pair " + std::to_string(pair_a.number()) + ": success, 100 bytes");
  if (GetParam() == QpType::uc) return;  // an unreliable write's completion does not mean that the bytes have arrived
  b.meet_engine();
  EXPECT_TRUE(std::equal(a.memory.begin(), a.memory.begin() + 100, b.memory.begin() + 4096));
}

INSTANTIATE_TEST_SUITE_P(Types, ConnectedBy, testing::Values(QpType::rc, QpType::uc),
                         [](const auto& type) { return type.param == QpType::rc ? "rc" : "uc"; });

TEST(Connect, FindsReceivesThatWerePostedInInit) {
  Connected c(Road::self, {}, QpState::reset);
  Side& side = c.a;
  const CompletionQueue queue = quiet_queue(side);
  QueuePair here = pair_of(side, queue), there = pair_of(side, queue);
  move(there, attributes_for({}, side.device, 0, 0, 0), QpState::init);
  const Sge sge = side.region.sge(0, 64);
  ASSERT_EQ(there.post_receive({.id = 1, .sges = {&sge, 1}}), 0);
  ASSERT_TRUE(connect(there, here.address()));
  ASSERT_TRUE(connect(here, there.address(), {.rnr_retry = 0}));
  ASSERT_EQ(here.post_send({.id = 2, .flags = send_flags::signaled}), 0);
  std::array<WorkCompletion, 2> both;
  CompletionQueue waiting = queue;
  for (std::size_t taken = 0; taken < 2;) {
    const auto count = waiting.wait(std::span(both).subspan(taken), Instant::clock::now() + 20s);
    ASSERT_TRUE(count) << count.error().message;
    for (std::size_t i = 0; i < *count; ++i) EXPECT_EQ(both[taken + i].status, WcStatus::success);
    taken += *count;
  }
}

TEST(Connect, LeavesInResetWhatItCannotConnect) {
  Side side(1, Road::self);
  const CompletionQueue queue = quiet_queue(side);
  QueuePair pair = pair_of(side, queue), datagrams = pair_of(side, queue, QpType::ud);
  const auto nowhere = connect(pair, {.gid = {}, .number = 5});
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().system_errno, EINVAL);
  EXPECT_EQ(pair.state(), QpState::reset);
  const auto refused = connect(datagrams, pair.address());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().system_errno, EINVAL);
}

TEST(Waiting, EndsAtItsDeadline) {
  Side side(1, Road::self);
  CompletionQueue queue = quiet_queue(side);
  WorkCompletion none;
  for (int i = 0; i < 2; ++i) {
    const auto nothing = queue.wait({&none, 1}, Instant::clock::now() + 1ms);
    ASSERT_FALSE(nothing);
    EXPECT_EQ(nothing.error().system_errno, ETIMEDOUT);
  }
  EXPECT_EQ(queue.wait({}, kNever).value_or(9), 0U);
}

// Its events belong to the thread that reads the channel.
TEST(Waiting, IsRefusedBesideAChannel) {
  Side side(1, Road::self);
  WorkCompletion none;
  const auto refused = side.queue.wait({&none, 1}, kNever);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().system_errno, EINVAL);
}

// Wakes each time, even for a completion that came while wait() was only polling.
TEST(Waiting, WakesForEachCompletion) {
  Connected c(Road::self, {}, QpState::reset);
  Side& side = c.a;
  CompletionQueue queue = quiet_queue(side);
  QueuePair here = pair_of(side, queue), there = pair_of(side, queue);
  ASSERT_TRUE(connect(there, here.address()));
  ASSERT_TRUE(connect(here, there.address()));
  const auto post = [&](std::uint64_t id) {
    ASSERT_EQ(here.post_send({.id = id, .opcode = SendOpcode::write, .flags = send_flags::signaled}), 0);
  };
  for (std::uint64_t id = 0; id < 20; ++id) {
    std::thread late([&] {
      if (id % 2 != 0) std::this_thread::sleep_for(2ms);  // wait() is asleep by then in most cases
      post(id);
    });
    WorkCompletion done;
    const auto count = queue.wait({&done, 1}, Instant::clock::now() + 20s);
    late.join();
    ASSERT_TRUE(count) << count.error().message;
    EXPECT_EQ(done.wr_id, id);
  }
}

TEST(Describe, NamesTheCauseOfAFailure) {
  const WorkCompletion failed{.wr_id = 7,
                              .status = WcStatus::rem_access_err,
                              .opcode = WcOpcode::read,
                              .vendor_err = static_cast<std::uint32_t>(Cause::key_unknown),
                              .qp_num = 3};
  EXPECT_EQ(describe(failed), "read 7 of queue pair 3: " + std::string(to_string(WcStatus::rem_access_err)) + ": " +
                                  explain(Cause::key_unknown));
}

}  // namespace
}  // namespace fairlead::verbs
