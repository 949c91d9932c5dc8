// The program that loads the library may fork and block signals at any time (memory_test.cpp: what the child may do).

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <memory>

#include "base/child_for_tests.hpp"
#include "verbs/pair_for_tests.hpp"

namespace fairlead::verbs {
namespace {

// With a thread for callbacks, besides the engine's.
struct Program {
  Program()
      : side(1, Road::shm),
        calling(*CompletionQueue::create(side.context, {.capacity = 8, .on_event = [this] { ++called; }})),
        shown(*MemoryRegion::allocate(side.domain, std::size_t{1} << 20, Side::kAllRights)) {
    static_cast<std::byte*>(shown.address())[5] = std::byte{77};
  }

  std::atomic<int> called{0};
  Side side;
  CompletionQueue calling;
  MemoryRegion shown;
};

// Destroyed by exit().
std::unique_ptr<Program>& the_program() {
  static std::unique_ptr<Program> program;
  return program;
}

class VerbsProcess : public testing::Test {
 protected:
  void SetUp() override { the_program() = std::make_unique<Program>(); }
  void TearDown() override { the_program().reset(); }
};

int answers_of_inherited() {
  Program& its = *the_program();
  WorkCompletion none;
  if (its.calling.poll({&none, 1}) != -1) return 1;
  const auto region = MemoryRegion::allocate(its.side.domain, 4096, 0);
  if (region || region.error().system_errno != EIO) return 2;
  return region.error().message.find("before fork()") != std::string::npos ? 0 : 3;
}

TEST_F(VerbsProcess, AChildAnswersAndExitsAndNothingOfTheParentsIsGone) {
  EXPECT_EQ(base::exit_of_child(&answers_of_inherited), 0);
  EXPECT_EQ(static_cast<std::byte*>(the_program()->shown.address())[5], std::byte{77});
  auto pair = make_pair_at(the_program()->side);
  EXPECT_TRUE(pair) << pair.error().message;
}

TEST_F(VerbsProcess, ASignalBlockedAfterTheOpeningIsTheBlockers) {
  EXPECT_EQ(base::exit_of_child([] {
              const Program own;
              return base::is_signal_left_to_us() ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace fairlead::verbs
