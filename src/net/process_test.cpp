// The program that loads the library may fork and block signals at any time.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <fairlead/net.hpp>

#include "base/child_for_tests.hpp"
#include "net/record_for_tests.hpp"

namespace fairlead::net {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLong = std::uint64_t{1} << 20;  // long enough for pages that local peers can map

// What a program may have as static objects.
struct Program {
  explicit Program(const std::string& folder)
      : domain(Domain::open({.engine = {{"shm_directory", folder}}}).value()), machine(domain, {}) {
    own = machine.start_and_wait("127.0.0.1@udp:*:1:*").value();
    for (auto* buffer : {&kept, &queued, &sent}) {
      *buffer = Buffer::allocate(domain, kLong).value();
      EXPECT_EQ((*buffer)->set_callback(record.callback()), Status::ok);
      (*buffer)->segment(0)[kLong / 2] = std::byte{77};
    }
    EXPECT_EQ(machine.add(*queued, MessageReceive{}), Status::ok);
  }
  ~Program() { own = EndPoint(); }

  bool sends_to_itself() {
    if (machine.add(*sent, MessageSend{.to = own}) != Status::ok) return false;
    for (const Record::Entry& entry : record.wait_for(2)) {
      if (entry.status != Status::ok) return false;
    }
    return true;
  }

  Domain domain;
  Record record;
  TransferMachine machine;
  EndPoint own;
  std::unique_ptr<Buffer> kept, queued, sent;
};

// Destroyed by exit().
std::unique_ptr<Program>& the_program() {
  static std::unique_ptr<Program> program;
  return program;
}

class NetProcess : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / "fairlead_net_XXXXXX";
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
    the_program() = std::make_unique<Program>(folder_);
  }
  void TearDown() override {
    the_program().reset();
    fs::remove_all(folder_);
  }
  std::ptrdiff_t names() const { return std::distance(fs::directory_iterator(folder_), fs::directory_iterator()); }

  std::string folder_;
};

bool is_refused(const Result<>& result) {
  return !result && result.error().status == Status::bad_state &&
         result.error().message.find("before fork()") != std::string::npos;
}

int answers_of_inherited() {
  Program& its = *the_program();
  if (its.machine.state() != MachineState::undefined) return 1;
  if (!is_refused(its.machine.start("127.0.0.1@udp:*:1:*")) || !is_refused(its.machine.stop(StopMode::abort)) ||
      !is_refused(its.machine.close()) || !is_refused(its.domain.close()))
    return 2;
  if (its.machine.add(*its.sent, MessageSend{.to = its.own}) != Status::bad_state) return 3;
  if (its.machine.add(*its.kept, PassiveReceive{}) != Status::bad_state || its.machine.cancel(*its.queued)) return 4;
  if (its.machine.deliver_all(1) || its.machine.wait(kNever)) return 5;
  if (const auto more = Buffer::allocate(its.domain, kLong); more || more.error().status != Status::bad_state) return 6;
  TransferMachine late(its.domain, {});
  if (!is_refused(late.start("127.0.0.1@udp:*:1:*"))) return 7;
  // The child's copies are its own.
  its.kept->segment(0)[kLong / 2] = std::byte{1};
  return its.own.address().empty() ? 8 : 0;
}

TEST_F(NetProcess, AChildAnswersAndExitsAndNothingOfTheParentsIsGone) {
  const std::ptrdiff_t before = names();
  EXPECT_GT(before, 0);
  EXPECT_EQ(base::exit_of_child(&answers_of_inherited), 0);
  EXPECT_EQ(names(), before);
  EXPECT_EQ(the_program()->kept->segment(0)[kLong / 2], std::byte{77});
  EXPECT_TRUE(the_program()->sends_to_itself());
}

// The child destroys its inherited objects before it exits.
TEST_F(NetProcess, WhatAChildFreesIsNotTakenFromTheParent) {
  EXPECT_EQ(base::exit_of_child([] {
              the_program().reset();
              return 0;
            }),
            0);
  EXPECT_EQ(the_program()->kept->segment(0)[kLong / 2], std::byte{77});
  EXPECT_TRUE(the_program()->sends_to_itself());
}

TEST_F(NetProcess, AChildHasMachinesOfItsOwn) {
  EXPECT_EQ(base::exit_of_child([this] {
              Program own(folder_);
              return own.own.address() != the_program()->own.address() && own.sends_to_itself() ? 0 : 1;
            }),
            0);
}

// At the fork, threads hold locks that do not exist in the child.
TEST_F(NetProcess, AChildDoesNotWaitForThreadsThatItHasNot) {
  std::atomic<bool> is_over{false};
  std::thread busy([&] {
    while (!is_over) {
      static_cast<void>(the_program()->machine.statistics(false));
      static_cast<void>(Buffer::allocate(the_program()->domain, kLong));
      static_cast<void>(the_program()->machine.engine_counters());
    }
  });
  for (int i = 0; i < 10; ++i) EXPECT_EQ(base::exit_of_child(&answers_of_inherited), 0);
  is_over = true;
  busy.join();
}

TEST_F(NetProcess, ASignalBlockedAfterTheStartIsTheBlockers) {
  EXPECT_EQ(base::exit_of_child([this] {
              const Program own(folder_);
              return base::is_signal_left_to_us() ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace fairlead::net
