// XRC: an initiator names a shared receive queue with each request, and the target passes it on.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "verbs/pair_for_tests.hpp"

namespace fairlead::verbs {
namespace {

constexpr std::uint32_t kSize = 200;

/// An initiator at a, a target at b, and two shared receive queues behind it, each with its own completions and memory.
class Xrc : public ::testing::TestWithParam<Road> {
 protected:
  Xrc() { connect(); }

  static std::uint8_t host_of_b() {
    return GetParam() == Road::self ? std::uint8_t{1} : GetParam() == Road::faulty ? std::uint8_t{4} : std::uint8_t{2};
  }
  Result<SharedReceiveQueue> make_shared(const ProtectionDomain& domain, const XrcDomain& xrc, CompletionQueue& queue) {
    return SharedReceiveQueue::create(domain, {.max_wr = 16, .max_sge = 2, .xrc_domain = &xrc, .queue = &queue});
  }
  void connect() {
    const PairOptions options;
    move_up(target_, attributes_for(options, a_.device, initiator_.number(), 9, 5), QpState::rts);
    move_up(initiator_, attributes_for(options, b_.device, target_.number(), 5, 9), QpState::rts);
  }

  int post(SendRequest request, std::uint32_t queue_number) {
    request.flags = send_flags::signaled;
    request.remote_srqn = queue_number;
    return initiator_.post_send(request);
  }
  int send(std::uint32_t queue_number, std::size_t offset, std::uint32_t size = kSize) {
    const Sge from = a_.sge(offset, size);
    return post({.id = 1, .sges = {&from, 1}, .opcode = SendOpcode::send_imm, .imm = 77}, queue_number);
  }
  WcStatus sent() {
    const auto all = collect(a_, b_, 1);
    return all.size() == 1 ? all[0].status : WcStatus::general_err;
  }
  std::vector<WorkCompletion> received(CompletionQueue& queue, std::size_t most) {
    std::vector<WorkCompletion> all;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (all.size() < most && std::chrono::steady_clock::now() < end) {
      std::array<WorkCompletion, 8> some;
      const int count = queue.poll(some);
      if (count > 0) all.insert(all.end(), some.begin(), some.begin() + count);
      a_.context.progress();
    }
    return all;
  }

  Side a_{GetParam() == Road::faulty ? std::uint8_t{3} : std::uint8_t{1}, GetParam()};
  Side b_{host_of_b(), GetParam()};
  XrcDomain xrc_ = *XrcDomain::open(b_.context);
  CompletionQueue second_queue_ = *CompletionQueue::create(b_.context, {.capacity = 64});
  ProtectionDomain second_domain_ = *ProtectionDomain::allocate(b_.context);
  std::vector<std::byte> second_memory_ = std::vector<std::byte>(8192);
  MemoryRegion second_region_ = *MemoryRegion::add(second_domain_, Side::all_of(second_memory_, Side::kAllRights));
  SharedReceiveQueue first_ = *make_shared(b_.domain, xrc_, b_.queue);
  SharedReceiveQueue second_ = *make_shared(second_domain_, xrc_, second_queue_);
  QueuePair target_ = *QueuePair::create_target(xrc_);
  QueuePair initiator_ = *QueuePair::create(
      a_.domain, {.type = QpType::xrc_send, .send_queue = &a_.queue, .capacity = {.max_send_wr = 16}});
};
INSTANTIATE_TEST_SUITE_P(, Xrc, ::testing::Values(Road::self, Road::shm, Road::udp, Road::faulty),
                         [](const auto& one) { return to_string(one.param); });

TEST_P(Xrc, SendsGoToTheQueueThatTheyName) {
  a_.fill(0, 4096, 1);
  const Sge to_first = b_.sge(0, 4096);
  const Sge to_second{reinterpret_cast<std::uintptr_t>(second_memory_.data()), 4096, second_region_.lkey()};
  std::size_t taken = 0;
  for (const std::uint32_t size : {kSize, 4096U}) {
    const ReceiveRequest at_first{.id = 10, .sges = {&to_first, 1}}, at_second{.id = 20, .sges = {&to_second, 1}};
    ASSERT_EQ(first_.post({&at_first, 1}, taken), 0);
    ASSERT_EQ(second_.post({&at_second, 1}, taken), 0);
    ASSERT_EQ(send(second_.number(), 0, size), 0);
    EXPECT_EQ(sent(), WcStatus::success);
    ASSERT_EQ(send(first_.number(), 0, size), 0);
    EXPECT_EQ(sent(), WcStatus::success);
    const auto second = received(second_queue_, 1), first = received(b_.queue, 1);
    ASSERT_EQ(first.size() + second.size(), 2U);
    EXPECT_EQ(first[0].wr_id, 10U);
    EXPECT_EQ(second[0].wr_id, 20U);
    for (const WorkCompletion& each : {first[0], second[0]}) {
      EXPECT_EQ(each.status, WcStatus::success);
      EXPECT_EQ(each.qp_num, target_.number());
      EXPECT_EQ(each.byte_len, size);
      EXPECT_EQ(each.imm, 77U);
    }
    EXPECT_EQ(std::memcmp(a_.memory.data(), b_.memory.data(), size), 0);
    EXPECT_EQ(std::memcmp(a_.memory.data(), second_memory_.data(), size), 0);
  }
}

TEST_P(Xrc, MemoryIsThatOfTheQueuesDomain) {
  a_.fill(0, 64, 3);
  const Sge local = a_.sge(0, 64), result = a_.sge(100, 64), word = a_.sge(200, 8);
  const auto remote = reinterpret_cast<std::uintptr_t>(second_memory_.data());
  const SendRequest write{
      .id = 1, .sges = {&local, 1}, .opcode = SendOpcode::write, .rkey = second_region_.rkey(), .remote_addr = remote};
  SendRequest read = write, add = write;
  read.opcode = SendOpcode::read;
  read.sges = {&result, 1};
  add.opcode = SendOpcode::fetch_add;
  add.sges = {&word, 1};
  add.compare_add = 5;
  for (const SendRequest& request : {write, read, add}) {
    ASSERT_EQ(post(request, second_.number()), 0);
    EXPECT_EQ(sent(), WcStatus::success);
  }
  b_.meet_engine();
  EXPECT_EQ(std::memcmp(a_.memory.data() + 8, second_memory_.data() + 8, 56), 0);
  EXPECT_EQ(std::memcmp(a_.memory.data(), a_.memory.data() + 100, 64), 0);
  EXPECT_EQ(std::memcmp(a_.memory.data(), a_.memory.data() + 200, 8), 0) << "what was there before the addition";
  ASSERT_EQ(post(write, first_.number()), 0);
  EXPECT_EQ(sent(), WcStatus::rem_access_err) << "another domain's";
}

TEST_P(Xrc, AnEmptyQueueIsNotReadyAndTheOthersAre) {
  ASSERT_EQ(send(first_.number(), 0), 0);
  const Sge to = b_.sge(0, 4096);
  const ReceiveRequest request{.id = 10, .sges = {&to, 1}};
  for (int i = 0; i < 100; ++i) {
    a_.context.progress();
    b_.context.progress();
  }
  std::size_t taken = 0;
  ASSERT_EQ(first_.post({&request, 1}, taken), 0);
  EXPECT_EQ(sent(), WcStatus::success);
  EXPECT_EQ(received(b_.queue, 1).size(), 1U);
}

TEST_P(Xrc, ANumberOfAnotherDomainIsRefused) {
  const XrcDomain other = *XrcDomain::open(b_.context);
  SharedReceiveQueue foreign = *make_shared(b_.domain, other, b_.queue);
  ASSERT_EQ(send(foreign.number(), 0), 0);
  EXPECT_EQ(sent(), WcStatus::rem_inv_req_err);
  EXPECT_EQ(target_.state(), QpState::err);
}

TEST_P(Xrc, AQueueMayGoWhileItsTargetStays) {
  const std::uint32_t number = second_.number();
  ASSERT_TRUE(second_.destroy());
  ASSERT_EQ(send(number, 0), 0);
  EXPECT_EQ(sent(), WcStatus::rem_inv_req_err);
}

TEST_P(Xrc, AReceiveIsToldThoughItsTargetIsGone) {
  const Sge to{reinterpret_cast<std::uintptr_t>(second_memory_.data()), 4096, second_region_.lkey()};
  const ReceiveRequest request{.id = 20, .sges = {&to, 1}};
  std::size_t taken = 0;
  ASSERT_EQ(second_.post({&request, 1}, taken), 0);
  ASSERT_EQ(send(second_.number(), 0), 0);
  ASSERT_EQ(sent(), WcStatus::success);
  ASSERT_TRUE(target_.destroy());
  const auto told = received(second_queue_, 1);
  ASSERT_EQ(told.size(), 1U) << "the sender was told that it arrived";
  EXPECT_EQ(told[0].status, WcStatus::success);
}

TEST_P(Xrc, EventsOfAQueueThatIsGoneAreNotTold) {
  {
    auto low =
        SharedReceiveQueue::create(b_.domain, {.max_wr = 4, .limit = 1, .xrc_domain = &xrc_, .queue = &b_.queue});
    ASSERT_TRUE(low);
    const Sge to = b_.sge(0, 4096);
    const ReceiveRequest request{.id = 10, .sges = {&to, 1}};
    std::size_t taken = 0;
    ASSERT_EQ(low->post({&request, 1}, taken), 0);
    ASSERT_EQ(send(low->number(), 0), 0);
    ASSERT_EQ(sent(), WcStatus::success) << "which told that few are left";
  }
  const auto told = Connected::events(b_);
  EXPECT_TRUE(std::ranges::find(told, AsyncEventType::srq_limit_reached) == told.end());
}

// One end is not XRC.
TEST_P(Xrc, EndsOfOtherKindsDoNotFit) {
  auto reliable = *make_pair_at(a_, QpType::rc, {.max_send_wr = 4});
  const PairOptions options;
  ASSERT_TRUE(target_.modify({.state = QpState::reset}, qp_mask::state));
  move_up(target_, attributes_for(options, a_.device, reliable.number(), 9, 5), QpState::rts);
  move_up(reliable, attributes_for(options, b_.device, target_.number(), 5, 9), QpState::rts);
  const Sge from = a_.sge(0, 10);
  ASSERT_EQ(reliable.post_send({.id = 1, .sges = {&from, 1}, .flags = send_flags::signaled}), 0);
  EXPECT_EQ(sent(), WcStatus::rem_inv_req_err);
  auto answering = *make_pair_at(b_, QpType::rc, {.max_recv_wr = 4});
  ASSERT_TRUE(initiator_.modify({.state = QpState::reset}, qp_mask::state));
  move_up(answering, attributes_for(options, a_.device, initiator_.number(), 9, 5), QpState::rts);
  move_up(initiator_, attributes_for(options, b_.device, answering.number(), 5, 9), QpState::rts);
  const Sge to = b_.sge(0, 100);
  ASSERT_EQ(answering.post_receive({.id = 2, .sges = {&to, 1}}), 0);
  ASSERT_EQ(send(first_.number(), 0), 0);
  EXPECT_EQ(sent(), WcStatus::rem_inv_req_err);
}

TEST_P(Xrc, ATargetEndsWithItsLastHandle) {
  auto opened = QueuePair::open_target(xrc_, target_.number());
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->state(), QpState::rts);
  EXPECT_EQ(QueuePair::open_target(xrc_, target_.number() + 1000).error().system_errno, EINVAL);
  ASSERT_TRUE(target_.destroy());
  const Sge to = b_.sge(0, 4096);
  const ReceiveRequest request{.id = 10, .sges = {&to, 1}};
  std::size_t taken = 0;
  ASSERT_EQ(first_.post({&request, 1}, taken), 0);
  ASSERT_EQ(send(first_.number(), 0), 0);
  EXPECT_EQ(sent(), WcStatus::success);
  EXPECT_EQ(received(b_.queue, 1).size(), 1U);
  const std::uint32_t number = opened->number();
  ASSERT_TRUE(opened->destroy());
  EXPECT_FALSE(QueuePair::open_target(xrc_, number));
}

/// Returns whether this process has that file open.
bool is_open(const struct stat& file) {
  return std::ranges::any_of(std::filesystem::directory_iterator("/proc/self/fd"), [&](const auto& entry) {
    struct stat each{};
    return ::stat(entry.path().c_str(), &each) == 0 && each.st_dev == file.st_dev && each.st_ino == file.st_ino;
  });
}

TEST(XrcDomains, KeepTheirFile) {
  Side side(1, Road::self);
  std::FILE* const opened = std::tmpfile();
  struct stat file{};
  ASSERT_EQ(::fstat(::fileno(opened), &file), 0);
  auto domain = *XrcDomain::open(side.context, {.descriptor = ::fileno(opened)});
  std::fclose(opened);
  EXPECT_TRUE(is_open(file)) << "else another could get its number, and with it the domain";
  EXPECT_TRUE(domain.close());
  EXPECT_FALSE(is_open(file));
}

TEST(XrcDomains, HaveOneHandleInAllCopies) {
  Side side(1, Road::self);
  std::FILE* const file = std::tmpfile();
  auto first = *XrcDomain::open(side.context, {.descriptor = ::fileno(file)});
  auto second = *XrcDomain::open(side.context, {.descriptor = ::fileno(file)});
  auto copy = first;
  const auto target = QueuePair::create_target(second);
  ASSERT_TRUE(target);
  EXPECT_TRUE(first.close());
  const auto again = copy.close();
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().system_errno, EINVAL) << "not that of the second";
  EXPECT_EQ(second.close().error().system_errno, EBUSY);
  std::fclose(file);
}

TEST(XrcDomains, AreSharedByFile) {
  Side side(1, Road::self);
  std::FILE* const file = std::tmpfile();
  const int descriptor = ::fileno(file), another = ::dup(descriptor);
  EXPECT_EQ(XrcDomain::open(side.context, {.descriptor = descriptor, .may_create = false}).error().system_errno,
            EAGAIN);
  EXPECT_EQ(XrcDomain::open(side.context, {.descriptor = 9999}).error().system_errno, EBADF);
  auto first = *XrcDomain::open(side.context, {.descriptor = descriptor});
  EXPECT_EQ(XrcDomain::open(side.context, {.descriptor = another, .has_to_create = true}).error().system_errno, EINVAL);
  auto second = *XrcDomain::open(side.context, {.descriptor = another, .may_create = false});
  auto target = *QueuePair::create_target(first);
  EXPECT_TRUE(QueuePair::open_target(second, target.number())) << "one domain";
  EXPECT_TRUE(first.close());
  EXPECT_EQ(second.close().error().system_errno, EBUSY);
  const Sge none{};
  EXPECT_EQ(target.post_receive({.id = 1, .sges = {&none, 1}}), EINVAL);
  EXPECT_NE(target.post_send({.id = 1, .sges = {}}), 0);
  ASSERT_TRUE(target.destroy());
  EXPECT_TRUE(second.close());
  ::close(another);
  std::fclose(file);
}

}  // namespace
}  // namespace fairlead::verbs
