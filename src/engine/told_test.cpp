// A peer can report the result of messages only if they were sent to it.

#include <random>
#include <vector>

#include "engine/engine_pair_for_tests.hpp"

namespace fairlead::engine {
namespace {

class EngineTold : public EnginePair {
 protected:
  /// Far's connection to near, for writing arbitrary records.
  shm::Connection& to_near() {
    return far_.engine->connections()->peer(far_.engine->connections()->find(near_.engine->address()));
  }
  /// The line behind the last record that near has written to far.
  std::uint64_t last_line() {
    return near_.engine->connections()
        ->peer(near_.engine->connections()->find(far_.engine->address()))
        .writer.written();
  }
  OperationHandle send(std::uint64_t cookie, std::size_t bytes) {
    memory_.emplace_back(bytes);
    pieces_.push_back({memory_.back().data(), bytes});
    OperationHandle operation;
    EXPECT_EQ(near_.engine->messages().send(
                  near_.port, {.to = {far_.engine->address(), kPort}, .part = {{&pieces_.back(), 1}, bytes, cookie}},
                  operation, now_),
              Status::ok);
    return operation;
  }

 private:
  std::deque<std::vector<std::byte>> memory_;
  std::deque<iovec> pieces_;
};

TEST_F(EngineTold, NonsenseEndsNothing) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200; ++i) {
    write_record(to_near(), {.operation = wire::Operation::told,
                             .status = static_cast<std::uint8_t>(random()),
                             .cookie = random() % 2 == 0 ? 0 : random(),
                             .a = random() >> random() % 64});
    near_.engine->check();
  }
  EXPECT_FALSE(near_.event());
  EXPECT_EQ(far_.counter("shm.refused_record"), 0U);
  std::vector<std::byte> room(100);
  const iovec to{room.data(), room.size()};
  OperationHandle receive;
  ASSERT_EQ(far_.engine->messages().post_receive(far_.port, {.memory = {&to, 1}, .size_min = 1}, receive), Status::ok);
  send(1, 100);
  const auto end = next(near_);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->status, Status::ok);
}

// Only the sender may end its message as cancelled or timed out. From the receiver, such a status means a refusal.
TEST_F(EngineTold, AnyOtherEndIsARefusal) {
  for (const Status said : {Status::canceled, Status::timed_out, Status::silent, static_cast<Status>(255)}) {
    send(1, 8);
    publish_record(to_near(),
                   {.operation = wire::Operation::told, .status = std::to_underlying(said), .a = last_line()});
    to_near().alert();
    pass(false);
    const auto end = near_.event();
    ASSERT_TRUE(end);
    EXPECT_EQ(end->status, Status::refused);
  }
}

TEST_F(EngineTold, AWordForAnotherEndsNothing) {
  std::vector<OperationHandle> sent;
  for (std::uint64_t i = 0; i < 10; ++i) sent.push_back(send(i, 8));
  const std::uint64_t last = last_line();
  write_record(
      to_near(),
      {.operation = wire::Operation::told, .status = static_cast<std::uint8_t>(Status::refused), .a = last + 1});
  write_record(to_near(),
               {.operation = wire::Operation::told, .status = static_cast<std::uint8_t>(Status::ok), .a = last});
  std::size_t ok = 0;
  while (const auto end = next(near_)) {
    EXPECT_EQ(end->status, Status::ok);
    if (++ok == sent.size()) break;
  }
  EXPECT_EQ(ok, sent.size());
}

}  // namespace
}  // namespace fairlead::engine
