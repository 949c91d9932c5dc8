// A request in the other direction carries the acknowledgement that is owed, also a long one.

#include "qp/pair_world_for_tests.hpp"

namespace fairlead::qp {
namespace {

class CarriedAnswer : public ::testing::Test {
 protected:
  CarriedAnswer() {
    world_.connect(0, near_, far_, 0, 0);
    world_.connect(1, far_, near_, 0, 0);
  }
  void send(std::size_t from, std::uint32_t bytes) {
    const verbs::Sge piece = world_.hosts[from].sge(0, bytes);
    const verbs::SendRequest request{.id = 1, .sges = {&piece, 1}, .flags = verbs::send_flags::signaled};
    std::size_t taken = 0;
    ASSERT_EQ(
        world_.hosts[from].pairs().post_send(from == 0 ? near_.handle : far_.handle, {&request, 1}, taken, world_.now),
        0);
  }
  void receive(std::size_t at) {
    const verbs::Sge room = world_.hosts[at].sge(500'000, 300'000);
    const verbs::ReceiveRequest request{.id = 2, .sges = {&room, 1}};
    std::size_t taken = 0;
    ASSERT_EQ(world_.hosts[at].pairs().post_receive(at == 0 ? near_.handle : far_.handle, {&request, 1}, taken), 0);
  }
  /// Steps until a host has `count` completions.
  void expect_completions(std::size_t at, std::size_t count) {
    const base::Instant limit = world_.now + 1s;
    std::size_t found = 0;
    while (found < count && world_.now < limit) {
      world_.step(limit);
      found += world_.hosts[at].completions().size();
    }
    EXPECT_EQ(found, count);
  }
  std::uint64_t answers(std::size_t at) { return world_.hosts[at].pairs().counters().answers_sent; }

  PairWorld world_{1, {}};
  const PairWorld::End near_ = world_.open(0, verbs::QpType::rc), far_ = world_.open(1, verbs::QpType::rc);
};

TEST_F(CarriedAnswer, TravelsWithALongAnswerOfTheProgram) {
  for (const std::size_t at : {0, 1}) receive(at);
  send(0, 100'000);
  expect_completions(1, 1);
  send(1, 100'000);  // before the next pass
  expect_completions(0, 2);
  EXPECT_EQ(answers(1), 0U);
  world_.run_until(world_.now + 10ms);
  EXPECT_EQ(answers(0), 1U) << "nothing carries this one";
}

TEST_F(CarriedAnswer, DoesNotWaitBehindOtherLongMessages) {
  for (int i = 0; i < 8; ++i) receive(0);
  receive(1);
  for (int i = 0; i < 6; ++i) send(1, 300'000);  // more than the window
  send(0, 8);
  expect_completions(1, 1);
  const std::uint64_t before = answers(1);
  send(1, 300'000);
  EXPECT_EQ(answers(1), before + 1);
}

}  // namespace
}  // namespace fairlead::qp
