// Synchronous delivery without a thread: the application's calls keep deadlines, tell what is new, and end a stop.

#include <dirent.h>
#include <poll.h>

#include <thread>

#include "net/machine_for_tests.hpp"

namespace fairlead::net {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using Events = std::vector<std::pair<MachineEvent::Kind, MachineState>>;
constexpr auto kState = MachineEvent::Kind::state_change;

int threads() {
  DIR* const folder = ::opendir("/proc/self/task");
  if (folder == nullptr) return -1;
  int entries = 0;
  while (::readdir(folder) != nullptr) ++entries;
  ::closedir(folder);
  return entries - 2;  // but . and ..
}

Instant in(Duration time) {
  return Instant::clock::now() + time;
}

/// Queues it with a deadline that is near; once more if the thread is held up for so long. Returns the deadline.
Instant add_for(Duration time, TransferMachine& machine, Buffer& buffer) {
  for (;;) {
    const Instant deadline = in(time);
    const Status status = machine.add(buffer, PassiveReceive{.deadline = deadline});
    if (status == Status::too_late) continue;
    EXPECT_EQ(status, Status::ok);
    return deadline;
  }
}

/// Over an engine of this process that has no thread either.
class DrivenMachine : public ::testing::Test {
 protected:
  DrivenMachine() {
    EXPECT_TRUE(machine_.deliver_synchronously());
    EXPECT_TRUE(machine_.start_and_wait("0@lo:20480:34:1"));
    EXPECT_EQ(one_->set_callback(record_.callback()), Status::ok);
  }
  Record record_;
  Domain domain_ = Domain::open().value();
  std::vector<MachineState> states_;
  TransferMachine machine_{domain_, [this](const MachineEvent& event) { states_.push_back(event.next_state); }};
  std::unique_ptr<Buffer> one_ = Buffer::allocate(domain_, 100).value();
};

// Threads of earlier tests may end meanwhile; none begins.
TEST(DrivenMachines, HaveNoThread) {
  Domain domain = Domain::open().value();
  TransferMachine first(domain);
  ASSERT_TRUE(first.deliver_synchronously());
  ASSERT_TRUE(first.start_and_wait("127.0.0.1@udp:*:34:1"));  // with it the engine's
  const int before = threads();
  ASSERT_GT(before, 0);
  {
    Record record;
    const auto buffer = Buffer::allocate(domain, 100).value();
    ASSERT_EQ(buffer->set_callback(record.callback()), Status::ok);
    for (const std::string& address :
         {std::string("0@lo:20480:34:1"), std::string(first.end_point().address()) + "0"}) {
      TransferMachine machine(domain);
      ASSERT_TRUE(machine.deliver_synchronously());
      ASSERT_TRUE(machine.start_and_wait(address));
      add_for(milliseconds(1), machine, *buffer);
      EXPECT_TRUE(machine.wait(kNever).value());
      EXPECT_EQ(machine.deliver_all().value(), 1U);
      ASSERT_EQ(machine.add(*buffer, PassiveReceive{}), Status::ok);
      EXPECT_LE(threads(), before);
      ASSERT_TRUE(machine.stop_and_wait(StopMode::abort));
      EXPECT_LE(threads(), before);
    }
    EXPECT_EQ(record.entries().size(), 4U);
  }
  EXPECT_LE(threads(), before);
}

TEST_F(DrivenMachine, ADeadlineEndsAWaitAndMakesTheDescriptorReadable) {
  for (const bool by_descriptor : {false, true, true}) {
    const Instant deadline = add_for(milliseconds(2), machine_, *one_);
    if (by_descriptor) {
      pollfd look{machine_.descriptor(), POLLIN, 0};
      while (machine_.arm().value()) ASSERT_EQ(::poll(&look, 1, 20'000), 1);
    } else {
      EXPECT_TRUE(machine_.wait(kNever).value());
    }
    EXPECT_GE(Instant::clock::now(), deadline);
    EXPECT_EQ(machine_.deliver_all().value(), 1U);
    EXPECT_EQ(record_.entries().back().status, Status::timed_out);
    EXPECT_TRUE(machine_.arm().value());
    pollfd look{machine_.descriptor(), POLLIN, 0};
    EXPECT_EQ(::poll(&look, 1, 0), 0) << "it is unreadable again";
  }
}

TEST_F(DrivenMachine, AnEarlierDeadlineWakesWhoSleepsForALaterOne) {
  const auto later = Buffer::allocate(domain_, 100).value();
  ASSERT_EQ(later->set_callback(record_.callback()), Status::ok);
  for (const bool by_descriptor : {false, true}) {
    ASSERT_EQ(machine_.add(*later, PassiveReceive{.deadline = in(hours(1))}), Status::ok);
    if (by_descriptor) {
      ASSERT_TRUE(machine_.arm().value());
    }
    const int descriptor = machine_.descriptor();
    std::jthread adder([&] { add_for(milliseconds(1), machine_, *one_); });
    if (by_descriptor) {
      pollfd look{descriptor, POLLIN, 0};
      do ASSERT_EQ(::poll(&look, 1, 20'000), 1);
      while (machine_.arm().value());
    } else {
      EXPECT_TRUE(machine_.wait(kNever).value());
    }
    EXPECT_EQ(machine_.deliver_all().value(), 1U);
    EXPECT_TRUE(machine_.cancel(*later));
    EXPECT_EQ(machine_.deliver_all().value(), 1U);
  }
}

TEST_F(DrivenMachine, AStopWithoutBuffersIsDoneAtOnce) {
  ASSERT_TRUE(machine_.stop(StopMode::drain));
  EXPECT_EQ(machine_.state(), MachineState::stopped);
  EXPECT_EQ(states_, (std::vector{MachineState::started, MachineState::stopped}));
  EXPECT_EQ(machine_.descriptor(), -1);
}

TEST_F(DrivenMachine, WhoeverDeliversEndsAStop) {
  add_for(milliseconds(1), machine_, *one_);
  ASSERT_TRUE(machine_.stop(StopMode::drain));
  EXPECT_EQ(machine_.state(), MachineState::stopping);
  EXPECT_TRUE(record_.entries().empty());
  EXPECT_TRUE(machine_.wait(kNever).value());
  EXPECT_EQ(machine_.deliver_all().value(), 1U);
  EXPECT_EQ(record_.entries().at(0).status, Status::timed_out);
  EXPECT_EQ(machine_.state(), MachineState::stopped);
  EXPECT_EQ(machine_.deliver_all().error(), Status::bad_state);
}

TEST_F(DrivenMachine, ItsDestructionDrains) {
  {
    TransferMachine machine(domain_);
    ASSERT_TRUE(machine.deliver_synchronously());
    ASSERT_TRUE(machine.start_and_wait("0@lo:20480:34:2"));
    ASSERT_EQ(machine.add(*one_, PassiveReceive{}), Status::ok);
  }
  EXPECT_EQ(record_.entries().at(0).status, Status::canceled);
  EXPECT_FALSE(one_->is_queued());
}

TEST_F(DrivenMachine, MayBeDestroyedWhenItTellsItsStartOrItsEnd) {
  for (const MachineState last : {MachineState::started, MachineState::stopped}) {
    std::unique_ptr<TransferMachine> machine;
    machine = std::make_unique<TransferMachine>(domain_, [&](const MachineEvent& event) {
      if (event.next_state == last) machine.reset();
    });
    TransferMachine* const own = machine.get();
    ASSERT_TRUE(own->deliver_synchronously());
    static_cast<void>(own->start_and_wait("0@lo:20480:34:2"));
    if (last == MachineState::stopped) {
      EXPECT_TRUE(own->stop(StopMode::abort));
    }
    EXPECT_EQ(machine, nullptr);
    TransferMachine next(domain_);  // the address is free
    EXPECT_TRUE(next.start_and_wait("0@lo:20480:34:2"));
  }
  machine_.stop(StopMode::abort).value();
  EXPECT_TRUE(machine_.close());
  EXPECT_EQ(one_->close().has_value(), true);
  EXPECT_TRUE(domain_.close()) << "a machine is still there";
}

TEST_F(MachineTest, NewsAreToldByTheNextCallThatLooks) {
  start_synchronous();
  fake_.core->drop_message();
  EXPECT_EQ(machine_events_.size(), 1U);
  EXPECT_FALSE(machine_.pending());
  EXPECT_EQ(machine_events_.back().first, MachineEvent::Kind::error);
  fake_.core->end();
  EXPECT_EQ(deliver(), 0U);
  EXPECT_EQ(machine_events_, (Events{{kState, MachineState::started},
                                     {MachineEvent::Kind::error, MachineState::undefined},
                                     {MachineEvent::Kind::error, MachineState::undefined}}));
}

}  // namespace
}  // namespace fairlead::net
