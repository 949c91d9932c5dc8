// Requests between two queue pairs of one engine. The thread that posts them or makes a pass copies them, up to a limit
// for each turn.

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
  constexpr std::size_t kInTurn = Requester::kCopiedInTurn / kBytes, kPosted = 2 * kInTurn + 1;
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

}  // namespace
}  // namespace fairlead::qp
