// A region that covers the whole address space: each access uses what is mapped then, with its rights.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "verbs/pair_for_tests.hpp"

namespace fairlead::verbs {
namespace {

class Everything : public ::testing::TestWithParam<Road> {
 protected:
  Everything() : c_(GetParam()), of_a_(everything(c_.a)), of_b_(everything(c_.b)) {}
  ~Everything() override { ::munmap(pages_, 4 * page_); }

  static MemoryRegion everything(Side& side) {
    return *MemoryRegion::add(
        side.domain,
        {.address = nullptr, .length = UINT64_MAX, .access = Side::kAllRights | access::on_demand, .iova = {}});
  }
  Sge at(const MemoryRegion& region, const std::byte* bytes, std::uint32_t length) {
    return {reinterpret_cast<std::uintptr_t>(bytes), length, region.lkey()};
  }
  WcStatus post(SendOpcode opcode, const Sge& local, const std::byte* remote) {
    EXPECT_EQ(c_.pa.post_send({.id = 1,
                               .sges = {&local, 1},
                               .opcode = opcode,
                               .flags = send_flags::signaled,
                               .rkey = of_b_.rkey(),
                               .remote_addr = reinterpret_cast<std::uintptr_t>(remote)}),
              0);
    return c_.one_at_a().status;
  }

  const std::size_t page_ = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  // Two pages are writable, the third is read-only, the fourth is not accessible.
  std::byte* const pages_ = [this] {
    void* const all = ::mmap(nullptr, 4 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    auto* const first = static_cast<std::byte*>(all);
    EXPECT_EQ(::mprotect(first + 2 * page_, page_, PROT_READ), 0);
    // Not unmapped, because another mapping could take its place.
    EXPECT_EQ(::mprotect(first + 3 * page_, page_, PROT_NONE), 0);
    return first;
  }();
  Connected c_;
  MemoryRegion of_a_, of_b_;
};
INSTANTIATE_TEST_SUITE_P(, Everything, ::testing::Values(Road::self, Road::shm, Road::cma, Road::udp),
                         [](const auto& one) { return to_string(one.param); });

TEST_P(Everything, IsReachedWhereMemoryIs) {
  EXPECT_EQ(of_a_.length(), UINT64_MAX);
  std::array<std::byte, 300> from{}, back{};
  std::ranges::fill(from, std::byte{0x5A});
  ASSERT_EQ(post(SendOpcode::write, at(of_a_, from.data(), 300), pages_ + page_ - 100), WcStatus::success);
  c_.b.meet_engine();
  EXPECT_EQ(std::memcmp(pages_ + page_ - 100, from.data(), 300), 0);
  ASSERT_EQ(post(SendOpcode::read, at(of_a_, back.data(), 300), pages_ + page_ - 100), WcStatus::success);
  EXPECT_EQ(back, from);
  ASSERT_EQ(post(SendOpcode::read, at(of_a_, back.data(), 100), pages_ + 2 * page_), WcStatus::success);
  const Sge to = at(of_b_, pages_, 300), sent = at(of_a_, from.data(), 300);
  ASSERT_EQ(c_.pb.post_receive({.id = 2, .sges = {&to, 1}}), 0);
  ASSERT_EQ(c_.pa.post_send({.id = 1, .sges = {&sent, 1}}), 0);
  EXPECT_EQ(c_.one_at_b().status, WcStatus::success);
  EXPECT_EQ(std::memcmp(pages_, from.data(), 300), 0);
}

TEST_P(Everything, IsNotWrittenToWhereThatIsForbidden) {
  EXPECT_EQ(post(SendOpcode::write, c_.a.sge(0, 100), pages_ + 2 * page_ - 50), WcStatus::rem_access_err);
  EXPECT_EQ(c_.pb.state(), QpState::err);
}

TEST_P(Everything, IsNotReachedWhereNothingIs) {
  EXPECT_EQ(post(SendOpcode::read, c_.a.sge(0, 100), pages_ + 3 * page_ - 50), WcStatus::rem_access_err);
}

TEST_P(Everything, IsNotSentFromWhereNothingIs) {
  const Sge from = at(of_a_, pages_ + 3 * page_ - 50, 100);
  ASSERT_EQ(c_.pa.post_send({.id = 1, .sges = {&from, 1}}), 0);
  EXPECT_EQ(c_.one_at_a().status, WcStatus::loc_prot_err);
}

TEST_P(Everything, IsNotReceivedIntoWhereNothingIs) {
  const Sge to = at(of_b_, pages_ + 3 * page_ - 50, 100);
  ASSERT_EQ(c_.pb.post_receive({.id = 2, .sges = {&to, 1}}), 0);
  const Sge from = c_.a.sge(0, 100);
  ASSERT_EQ(c_.pa.post_send({.id = 1, .sges = {&from, 1}}), 0);
  EXPECT_EQ(c_.one_at_b().status, WcStatus::loc_prot_err);
  EXPECT_EQ(c_.one_at_a().status, WcStatus::rem_op_err);
}

TEST_P(Everything, TakesNoAtomicWhereNothingIsWritten) {
  std::uint64_t before = 0;
  const Sge to = at(of_a_, reinterpret_cast<const std::byte*>(&before), 8);
  const auto add = [&](const std::byte* remote) {
    EXPECT_EQ(c_.pa.post_send({.id = 1,
                               .sges = {&to, 1},
                               .opcode = SendOpcode::fetch_add,
                               .flags = send_flags::signaled,
                               .rkey = of_b_.rkey(),
                               .remote_addr = reinterpret_cast<std::uintptr_t>(remote),
                               .compare_add = 5}),
              0);
    return c_.one_at_a().status;
  };
  EXPECT_EQ(add(pages_ + page_), WcStatus::success);
  c_.b.meet_engine();
  EXPECT_EQ(pages_[page_], std::byte{5});
  EXPECT_EQ(add(pages_ + 2 * page_), WcStatus::rem_access_err);
}

// A long message is read for as long as it is being sent.
TEST_P(Everything, MayGoWhileItIsOnItsWay) {
  constexpr std::uint32_t kBytes = 2 << 20;
  void* const large = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memset(large, 0x33, kBytes);
  const Sge to = c_.a.sge(0, kBytes);
  const std::uint64_t before = c_.counted_at_b("qp.answers_sent");
  ASSERT_EQ(c_.pa.post_send({.id = 1,
                             .sges = {&to, 1},
                             .opcode = SendOpcode::read,
                             .flags = send_flags::signaled,
                             .rkey = of_b_.rkey(),
                             .remote_addr = reinterpret_cast<std::uintptr_t>(large)}),
            0);
  if (GetParam() != Road::self) ASSERT_TRUE(c_.wait_until_counted_at_b("qp.answers_sent", before));
  ::mprotect(large, kBytes, PROT_NONE);
  EXPECT_EQ(c_.one_at_a().status, WcStatus::success);
  c_.a.meet_engine();
  EXPECT_EQ(c_.a.memory.front(), std::byte{0x33});
  EXPECT_EQ(c_.a.memory[kBytes - 1], std::byte{0x33});

  ::mprotect(large, kBytes, PROT_READ | PROT_WRITE);
  const Sge from = at(of_a_, static_cast<const std::byte*>(large), kBytes), there = c_.b.sge(0, kBytes);
  ASSERT_EQ(c_.pb.post_receive({.id = 2, .sges = {&there, 1}}), 0);
  ASSERT_EQ(c_.pa.post_send({.id = 3, .sges = {&from, 1}}), 0);
  ::mprotect(large, kBytes, PROT_NONE);
  EXPECT_EQ(c_.one_at_b().status, WcStatus::success);
  c_.b.meet_engine();
  EXPECT_EQ(c_.b.memory[kBytes - 1], std::byte{0x33});
  ::munmap(large, kBytes);
}

TEST(EverythingMoved, IsRefused) {
  Side side(1, Road::self);
  Registration moved{
      .address = nullptr, .length = UINT64_MAX, .access = access::local_write | access::on_demand, .iova = 4096};
  EXPECT_EQ(MemoryRegion::add(side.domain, moved).error().system_errno, EINVAL);
  moved.iova = 0;
  EXPECT_TRUE(MemoryRegion::add(side.domain, moved));
  moved.access |= access::zero_based;
  EXPECT_EQ(MemoryRegion::add(side.domain, moved).error().system_errno, EINVAL);
}

TEST_P(Everything, IsStillOfItsDomainAndItsRights) {
  auto readable = *MemoryRegion::add(
      c_.b.domain,
      {.address = nullptr, .length = UINT64_MAX, .access = access::remote_read | access::on_demand, .iova = {}});
  std::swap(readable, of_b_);
  EXPECT_EQ(post(SendOpcode::read, c_.a.sge(0, 100), pages_), WcStatus::success);
  EXPECT_EQ(post(SendOpcode::write, c_.a.sge(0, 100), pages_), WcStatus::rem_access_err);
}

}  // namespace
}  // namespace fairlead::verbs
