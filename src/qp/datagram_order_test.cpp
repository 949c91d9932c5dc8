// Short and long datagrams of one queue pair, alternating, on a network without loss.

#include <algorithm>

#include "qp/pair_world_for_tests.hpp"

namespace fairlead::qp {
namespace {

TEST(DatagramOrder, IsThatOfTheirRequests) {
  constexpr std::uint32_t kSends = 60;
  PairWorld world(1, {});
  const auto near = world.open(0, verbs::QpType::ud), far = world.open(1, verbs::QpType::ud);
  world.connect(0, near, far, 0, 0);
  world.connect(1, far, near, 0, 0);
  const verbs::Sge room = world.hosts[1].sge(0, 4096), some = world.hosts[0].sge(0, 8),
                   many = world.hosts[0].sge(0, 3000);
  const verbs::AddressVector to{.dgid = base::SocketAddress::from_ip("10.0.0.2", 20480)->ip, .is_global = true};
  std::size_t taken = 0;
  for (std::uint32_t i = 0; i < kSends; ++i) {
    const verbs::ReceiveRequest receive{.id = i, .sges = {&room, 1}};
    ASSERT_EQ(world.hosts[1].pairs().post_receive(far.handle, {&receive, 1}, taken), 0);
  }
  for (std::uint32_t i = 0; i < kSends; ++i) {
    const verbs::SendRequest send{.id = i,
                                  .sges = {i % 3 == 0 ? &many : &some, 1},
                                  .opcode = verbs::SendOpcode::send_imm,
                                  .imm = i,
                                  .to = &to,
                                  .remote_qpn = far.number,
                                  .remote_qkey = 5};
    ASSERT_EQ(world.hosts[0].pairs().post_send(near.handle, {&send, 1}, taken, world.now), 0);
  }
  world.run_until(world.now + 100ms);
  const auto received = world.hosts[1].completions();
  ASSERT_EQ(received.size(), kSends);
  EXPECT_TRUE(std::ranges::is_sorted(received, {}, &verbs::WorkCompletion::imm));
}

}  // namespace
}  // namespace fairlead::qp
