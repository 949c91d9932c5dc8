// Synchronous delivery without a thread: the application's calls enforce deadlines, report news and complete a stop.

#include <dirent.h>
#include <poll.h>
#include <sys/epoll.h>

#include <atomic>
#include <thread>

#include "base/file_descriptor.hpp"
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
  return entries - 2;  // without . and ..
}

Instant in(Duration time) {
  return Instant::clock::now() + time;
}

/// Queues the buffer with a near deadline; retries if the thread was delayed for so long. Returns the deadline.
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

// Threads of earlier tests may end meanwhile; none may start.
TEST(DrivenMachines, HaveNoThread) {
  Domain domain = Domain::open().value();
  TransferMachine first(domain);
  ASSERT_TRUE(first.deliver_synchronously());
  ASSERT_TRUE(first.start_and_wait("127.0.0.1@udp:*:34:1"));  // starts the engine's thread, too
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

TEST_F(DrivenMachine, AStopIsSeenByWhoeverWatchesTheDescriptor) {
  const base::FileDescriptor watch(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{.events = EPOLLIN, .data = {}};
  ASSERT_EQ(::epoll_ctl(watch.get(), EPOLL_CTL_ADD, machine_.descriptor(), &event), 0);
  ASSERT_TRUE(machine_.arm().value());
  ASSERT_EQ(::epoll_wait(watch.get(), &event, 1, 0), 0);
  ASSERT_TRUE(machine_.stop(StopMode::drain));
  EXPECT_EQ(::epoll_wait(watch.get(), &event, 1, 0), 1);
}

TEST_F(DrivenMachine, ACallbackOfAnyCallMayStopIt) {
  TransferMachine other(domain_, [](const MachineEvent& event) {
    if (event.next_state == MachineState::started) event.machine.stop(StopMode::drain).value();
  });
  ASSERT_TRUE(other.deliver_synchronously());
  ASSERT_TRUE(other.start("0@lo:20480:34:2"));
  EXPECT_EQ(other.state(), MachineState::stopped);

  ASSERT_EQ(one_->set_callback([](const BufferEvent& event) { event.machine->stop(StopMode::drain).value(); }),
            Status::ok);
  ASSERT_EQ(machine_.add(*one_, PassiveReceive{}), Status::ok);
  one_.reset();
  EXPECT_EQ(machine_.state(), MachineState::stopped);
}

TEST_F(DrivenMachine, MayBeDestroyedByNewsOnTheThreadOfNotify) {
  std::atomic<bool> is_destroyed = false;
  auto* const machine = new TransferMachine(domain_, [&](const MachineEvent& event) {
    if (event.kind != MachineEvent::Kind::statistics) return;
    delete &event.machine;
    is_destroyed = true;
    is_destroyed.notify_one();
  });
  ASSERT_TRUE(machine->deliver_synchronously());
  ASSERT_TRUE(machine->report_statistics(milliseconds(1)));
  ASSERT_TRUE(machine->start_and_wait("0@lo:20480:34:2"));
  ASSERT_EQ(machine->notify([] {}), Status::ok);
  is_destroyed.wait(false);
  ASSERT_TRUE(machine_.stop_and_wait(StopMode::abort));
  ASSERT_TRUE(machine_.close());
  one_.reset();
  for (int looks = 0; looks < 5'000 && !domain_.close(); ++looks) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_TRUE(domain_.close()) << "a machine is still there";
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
    TransferMachine next(domain_);  // succeeds because the address is free
    EXPECT_TRUE(next.start_and_wait("0@lo:20480:34:2"));
  }
  machine_.stop(StopMode::abort).value();
  EXPECT_TRUE(machine_.close());
  EXPECT_EQ(one_->close().has_value(), true);
  EXPECT_TRUE(domain_.close()) << "a machine is still there";
}

// The thread of notify() comes while the port closes.
TEST_F(MachineTest, AStopEndsWhileASignalIsWanted) {
  start_synchronous();
  fake_.core->nap_at_close();
  ASSERT_EQ(machine_.notify([] {}), Status::ok);
  ASSERT_TRUE(machine_.stop_and_wait(StopMode::abort));
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
