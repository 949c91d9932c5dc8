// Engine::check() detects a violated invariant.

#include <gtest/gtest.h>

#include <array>

#include "engine/engine_pair_for_tests.hpp"

namespace fairlead::engine {
namespace {

class EngineCheck : public EnginePair {
 protected:
  void post_and_send() {
    OperationHandle operation;
    ASSERT_EQ(far_.engine->messages().post_receive(far_.port, {.memory = {&to_, 1}, .size_min = 1, .messages_max = 1},
                                                   operation),
              Status::ok);
    ASSERT_EQ(
        near_.engine->messages().send(
            near_.port, {.to = {far_.engine->address(), kPort}, .part = {{&from_, 1}, bytes_.size()}}, operation, now_),
        Status::ok);
  }

  std::array<std::byte, 64> bytes_{}, room_{};
  iovec from_{bytes_.data(), bytes_.size()}, to_{room_.data(), room_.size()};
};

TEST_F(EngineCheck, HoldsWhileOperationsComeAndGo) {
  post_and_send();
  for (int step = 0; step < 4; ++step) {
    near_.engine->check();
    far_.engine->check();
    pass();
  }
  EXPECT_TRUE(near_.event().has_value());
}

using EngineCheckDeathTest = EngineCheck;

TEST_F(EngineCheckDeathTest, SeesAnOperationThatIsCountedAndNotThere) {
  post_and_send();
  ++far_.engine->ports().find(far_.port)->operations;
  EXPECT_DEATH(far_.engine->check(), "2 operations, of which 1 are here and 0 in the transports");
}

}  // namespace
}  // namespace fairlead::engine
