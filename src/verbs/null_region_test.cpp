// A null region: local memory of any address and length that discards what is written to it and reads as zeros.

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <string>

#include <fairlead/verbs/memory_window.hpp>

#include "verbs/pair_for_tests.hpp"

namespace fairlead::verbs {
namespace {

constexpr std::uint32_t kShort = 100, kLong = 200'000;  // bytes; the second is sent without a copy of other memory

class NullRegion : public ::testing::TestWithParam<Road> {
 protected:
  NullRegion() : c_(GetParam()), of_a_(*MemoryRegion::null(c_.a.domain)), of_b_(*MemoryRegion::null(c_.b.domain)) {}

  static Sge at(const MemoryRegion& region, std::uint64_t address, std::uint32_t length) {
    return {address, length, region.lkey()};
  }
  WcStatus post(SendOpcode opcode, std::span<const Sge> local, std::uint32_t rkey, std::uint64_t remote) {
    EXPECT_EQ(c_.pa.post_send({.id = 1,
                               .sges = local,
                               .opcode = opcode,
                               .flags = send_flags::signaled,
                               .rkey = rkey,
                               .remote_addr = remote}),
              0);
    return c_.one_at_a().status;
  }
  static bool are_zeros(std::span<const std::byte> bytes) {
    return std::ranges::all_of(bytes, [](std::byte one) { return one == std::byte{0}; });
  }
  static std::span<std::byte> part(Side& side, std::size_t offset, std::size_t length) {
    return std::span(side.memory).subspan(offset, length);
  }

  Connected c_;
  MemoryRegion of_a_, of_b_;
};
INSTANTIATE_TEST_SUITE_P(, NullRegion, ::testing::Values(Road::self, Road::shm, Road::cma, Road::udp),
                         [](const auto& one) { return to_string(one.param); });

TEST_P(NullRegion, HasALocalKeyOnly) {
  EXPECT_NE(of_a_.lkey(), 0u);
  EXPECT_EQ(of_a_.rkey(), 0u);
  EXPECT_EQ(of_a_.address(), nullptr);
  EXPECT_EQ(of_a_.length(), UINT64_MAX);
  const Sge from = c_.a.sge(0, kShort);
  EXPECT_EQ(post(SendOpcode::write, {&from, 1}, of_b_.lkey(), 0), WcStatus::rem_access_err);
}

TEST_P(NullRegion, IsNotReadByPeers) {
  const Sge to = c_.a.sge(0, kShort);
  EXPECT_EQ(post(SendOpcode::read, {&to, 1}, of_b_.lkey(), 0), WcStatus::rem_access_err);
}

TEST_P(NullRegion, CannotBeChangedAndTakesNoWindow) {
  const auto changed = of_a_.change({.place = {}, .access = access::local_write | access::mw_bind});
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().system_errno, EINVAL);
  auto window = *MemoryWindow::allocate(c_.a.domain, WindowType::type_2);
  const WindowBinding binding{.window = window.rkey(),
                              .key = window.rkey() + 1,
                              .lkey = of_a_.lkey(),
                              .access = access::remote_read,
                              .addr = 0,
                              .length = 64};
  ASSERT_EQ(c_.pa.post_send({.id = 1, .opcode = SendOpcode::bind_window, .binding = &binding}), 0);
  EXPECT_EQ(c_.one_at_a().status, WcStatus::mw_bind_err);
}

TEST_P(NullRegion, ReadsAsZeros) {
  for (const std::uint32_t length : {kShort, kLong}) {
    c_.a.fill(0, length, 1);
    std::ranges::fill(part(c_.b, 0, length), std::byte{0x5A});
    const Sge from = at(of_a_, 0, length), to = c_.b.sge(0, length);
    ASSERT_EQ(c_.pb.post_receive({.id = 2, .sges = {&to, 1}}), 0);
    ASSERT_EQ(c_.pa.post_send({.id = 1, .sges = {&from, 1}}), 0);
    const WorkCompletion received = c_.one_at_b();
    EXPECT_EQ(received.status, WcStatus::success);
    EXPECT_EQ(received.byte_len, length);
    EXPECT_TRUE(are_zeros(part(c_.b, 0, length))) << length;

    std::ranges::fill(part(c_.b, 0, length), std::byte{0x5A});
    const Sge high = at(of_a_, UINT64_MAX - 5, length);  // beyond the last address
    EXPECT_EQ(post(SendOpcode::write, {&high, 1}, c_.b.region.rkey(), c_.b.remote(0)), WcStatus::success);
    c_.b.meet_engine();
    EXPECT_TRUE(are_zeros(part(c_.b, 0, length))) << length;
  }
}

// The way to pad data that a program sends.
TEST_P(NullRegion, IsOneOfSeveralPieces) {
  c_.a.fill(0, 300, 1);
  std::ranges::fill(part(c_.b, 0, 1000), std::byte{0x5A});
  const std::array from{c_.a.sge(0, 100), at(of_a_, 77, 500), c_.a.sge(100, 200)};
  EXPECT_EQ(post(SendOpcode::write, from, c_.b.region.rkey(), c_.b.remote(0)), WcStatus::success);
  c_.b.meet_engine();
  EXPECT_EQ(std::memcmp(c_.b.memory.data(), c_.a.memory.data(), 100), 0);
  EXPECT_TRUE(are_zeros(part(c_.b, 100, 500)));
  EXPECT_EQ(std::memcmp(c_.b.memory.data() + 600, c_.a.memory.data() + 100, 200), 0);
}

TEST_P(NullRegion, DiscardsWhatIsReceived) {
  for (const std::uint32_t length : {kShort, kLong}) {
    c_.a.fill(0, length, 1);
    std::ranges::fill(part(c_.b, 0, length), std::byte{0x5A});
    // The ends are kept.
    const std::array to{c_.b.sge(0, 10), at(of_b_, 0, length - 20), c_.b.sge(10, 10)};
    ASSERT_EQ(c_.pb.post_receive({.id = 2, .sges = to}), 0);
    const Sge from = c_.a.sge(0, length);
    ASSERT_EQ(c_.pa.post_send({.id = 1, .sges = {&from, 1}}), 0);
    const WorkCompletion received = c_.one_at_b();
    EXPECT_EQ(received.status, WcStatus::success);
    EXPECT_EQ(received.byte_len, length);
    EXPECT_EQ(std::memcmp(c_.b.memory.data(), c_.a.memory.data(), 10), 0);
    EXPECT_EQ(std::memcmp(c_.b.memory.data() + 10, c_.a.memory.data() + length - 10, 10), 0);
    EXPECT_EQ(c_.b.memory[20], std::byte{0x5A});
  }
}

TEST_P(NullRegion, DiscardsWhatIsRead) {
  for (const std::uint32_t length : {kShort, kLong}) {
    c_.b.fill(0, length, 1);
    const std::array to{at(of_a_, 4096, length - 10), c_.a.sge(0, 10)};
    EXPECT_EQ(post(SendOpcode::read, to, c_.b.region.rkey(), c_.b.remote(0)), WcStatus::success);
    c_.a.meet_engine();
    EXPECT_EQ(std::memcmp(c_.a.memory.data(), c_.b.memory.data() + length - 10, 10), 0);
  }
}

TEST_P(NullRegion, DiscardsTheResultOfAnAtomic) {
  const Sge to = at(of_a_, 0, 8);
  ASSERT_EQ(c_.pa.post_send({.id = 1,
                             .sges = {&to, 1},
                             .opcode = SendOpcode::fetch_add,
                             .flags = send_flags::signaled,
                             .rkey = c_.b.region.rkey(),
                             .remote_addr = c_.b.remote(0),
                             .compare_add = 5}),
            0);
  EXPECT_EQ(c_.one_at_a().status, WcStatus::success);
}

TEST_P(NullRegion, IsGoneWhenItIsDeregistered) {
  const Sge from = at(of_a_, 0, kShort);
  EXPECT_TRUE(of_a_.remove());
  EXPECT_EQ(post(SendOpcode::write, {&from, 1}, c_.b.region.rkey(), c_.b.remote(0)), WcStatus::loc_prot_err);
}

}  // namespace
}  // namespace fairlead::verbs
