// Memory windows over every road, in order with the other requests of a queue pair.

#include "verbs/pair_for_tests.hpp"

namespace fairlead::verbs {
namespace {

constexpr std::uint32_t kLength = 200'000;
constexpr std::size_t kAt = 1'000'000;  // the window's offset in b's memory
constexpr std::uint32_t kBindable = access::local_write | access::mw_bind;

using Way = std::tuple<Road, QpType>;
class Windows : public ::testing::TestWithParam<Way> {
 protected:
  /// b binds and announces the window; a writes and invalidates it.
  void come_and_go(std::uint32_t key, unsigned salt) {
    const WindowBinding binding{.window = window_.rkey(),
                                .key = key,
                                .lkey = region_.lkey(),
                                .access = access::remote_write | access::zero_based,
                                .addr = c_.b.remote(kAt),
                                .length = kLength};
    const Sge told = c_.a.sge(3'000'000, 8), word = c_.b.sge(0, 8), bytes = c_.a.sge(0, kLength);
    c_.a.fill(0, kLength, salt);
    ASSERT_EQ(c_.pa.post_receive({.id = 1, .sges = {&told, 1}}), 0);
    ASSERT_EQ(c_.pb.post_receive({.id = 2, .sges = {}}), 0);
    const std::array<SendRequest, 2> of_b{
        SendRequest{.id = 3, .opcode = SendOpcode::bind_window, .flags = send_flags::signaled, .binding = &binding},
        SendRequest{.id = 4, .sges = {&word, 1}, .flags = send_flags::signaled}};
    std::size_t taken = 0;
    ASSERT_EQ(c_.pb.post_send(of_b, taken), 0);
    EXPECT_EQ(c_.one_at_b().opcode, WcOpcode::bind_window);
    EXPECT_EQ(c_.one_at_b().wr_id, 4u);
    EXPECT_EQ(c_.one_at_a().wr_id, 1u);
    const std::array<SendRequest, 2> of_a{
        SendRequest{.id = 5, .sges = {&bytes, 1}, .opcode = SendOpcode::write, .rkey = key, .remote_addr = 0},
        SendRequest{.id = 6, .opcode = SendOpcode::send_invalidate, .flags = send_flags::signaled, .rkey = key}};
    ASSERT_EQ(c_.pa.post_send(of_a, taken), 0);
    const WorkCompletion received = c_.one_at_b();
    EXPECT_EQ(received.wr_id, 2u);
    EXPECT_EQ(received.status, WcStatus::success);
    EXPECT_EQ(received.wc_flags, wc_flags::with_inv);
    EXPECT_EQ(received.imm, key);
    EXPECT_EQ(std::memcmp(c_.a.memory.data(), c_.b.memory.data() + kAt, kLength), 0);
    const WorkCompletion sent = c_.one_at_a();
    EXPECT_EQ(sent.wr_id, 6u);
    EXPECT_EQ(sent.status, WcStatus::success);
  }

  Connected c_{std::get<0>(GetParam()), {.type = std::get<1>(GetParam())}};
  MemoryRegion region_ = *MemoryRegion::add(c_.b.domain, Side::all_of(c_.b.memory, kBindable));
  MemoryWindow window_ = *MemoryWindow::allocate(c_.b.domain, WindowType::type_2);
};
INSTANTIATE_TEST_SUITE_P(, Windows,
                         ::testing::Combine(::testing::ValuesIn(roads({Road::self, Road::shm, Road::udp, Road::faulty,
                                                                       Road::host, Road::hosts})),
                                            ::testing::Values(QpType::rc, QpType::uc)),
                         [](const auto& one) {
                           return to_string(std::get<0>(one.param)) +
                                  (std::get<1>(one.param) == QpType::rc ? "_rc" : "_uc");
                         });

TEST_P(Windows, ComeAndGoInOrder) {
  std::uint32_t key = window_.rkey();
  for (unsigned i = 0; i < 5; ++i) {
    key = next_key(key);
    come_and_go(key, i);
  }
  ASSERT_TRUE(region_.remove()) << "nothing is bound to it";
  if (std::get<1>(GetParam()) == QpType::uc) return;
  const Sge bytes = c_.a.sge(0, 8);
  ASSERT_EQ(c_.pa.post_send({.id = 7, .sges = {&bytes, 1}, .opcode = SendOpcode::write, .rkey = key}), 0);
  EXPECT_EQ(c_.one_at_a().status, WcStatus::rem_access_err);
}

}  // namespace
}  // namespace fairlead::verbs
