// States, start and stop, and destruction.

#include <atomic>
#include <latch>
#include <thread>

#include "net/machine_for_tests.hpp"

namespace fairlead::net {
namespace {

using Events = std::vector<std::pair<MachineEvent::Kind, MachineState>>;
constexpr auto kChange = MachineEvent::Kind::state_change;

// A start that never ended could not be stopped.
TEST_F(MachineTest, AStartWithoutMemoryFails) {
  fake_.core->throw_at_open();
  TransferMachine synchronous(fake_.domain);
  ASSERT_TRUE(synchronous.deliver_synchronously());
  for (TransferMachine* const machine : {&machine_, &synchronous}) {
    EXPECT_EQ(machine->start_and_wait(kAddress).error().status, Status::no_memory);
    EXPECT_EQ(machine->state(), MachineState::failed);
  }
}

TEST_F(MachineTest, StartsAndStops) {
  EXPECT_EQ(machine_.state(), MachineState::initialized);
  EXPECT_FALSE(machine_.end_point());
  EXPECT_EQ(machine_.message_size_max(), 0U);
  const EndPoint own = start();
  EXPECT_EQ(own.address(), kAddress);
  EXPECT_EQ(own, machine_.end_point());
  EXPECT_EQ(own, machine_.create_end_point(kAddress).value());
  EXPECT_EQ(machine_.state(), MachineState::started);
  EXPECT_GT(machine_.message_size_max(), 0U);
  EXPECT_EQ(machine_.engine_counters().at(0).name, "fake.submissions");
  EXPECT_EQ(machine_.describe(own), "never met 127.0.0.1:20480");
  EXPECT_EQ(machine_.describe(own, Status::silent), "never met 127.0.0.1:20480");
  const std::string absent = machine_.describe(own, Status::refused);
  EXPECT_TRUE(absent.starts_with("the process at 127.0.0.1@udp:20480 has no transfer machine 34:")) << absent;
  const std::string full = machine_.describe(own, Status::no_buffer), used = machine_.describe(own, Status::stale);
  EXPECT_TRUE(full.starts_with("no buffer queued at 127.0.0.1@udp:20480:34:")) << full;
  EXPECT_TRUE(used.starts_with("the passive buffer at 127.0.0.1@udp:20480 is not queued any more")) << used;
  EXPECT_EQ(machine_.describe(EndPoint(), Status::refused), "");
  EXPECT_EQ(machine_.describe_flight(own), "met 127.0.0.1:20480");
  EXPECT_EQ(machine_.describe_flight(EndPoint()), "");
  EXPECT_TRUE(machine_.stop_and_wait(StopMode::drain));
  EXPECT_EQ(machine_.state(), MachineState::stopped);
  EXPECT_EQ(fake_.core->ports_open(), 0U);
  EXPECT_EQ(machine_events_, (Events{{kChange, MachineState::started}, {kChange, MachineState::stopped}}));
}

TEST_F(MachineTest, FactsOfAPeerNeedNoSentence) {
  const EndPoint own = start();
  fake_.core->facts_of_peers = {.is_met = true, .release = 0x010203, .datagram_size = 1400, .longest_probe = 1200};
  PeerFacts facts = machine_.peer_facts(own, Status::ok);
  EXPECT_EQ(facts.problem, PeerProblem::none);
  EXPECT_EQ(facts.release, "1.2.3");
  EXPECT_EQ(facts.datagram_there, 1400U);
  EXPECT_EQ(facts.datagram_here, 1200U);
  EXPECT_FALSE(facts.is_translated);
  EXPECT_EQ(machine_.peer_facts(own, Status::refused).problem, PeerProblem::no_machine) << "the engine there lives";
  EXPECT_EQ(machine_.peer_facts(own, Status::silent).problem, PeerProblem::none);

  using Known = transport::PeerProblem;
  for (const auto& [known, told] : {std::pair(Known::never_heard, PeerProblem::never_heard),
                                    {Known::nobody_listens, PeerProblem::nobody_listens},
                                    {Known::other, PeerProblem::other}}) {
    fake_.core->facts_of_peers = {.problem = known, .is_translated = true};
    facts = machine_.peer_facts(own, Status::refused);
    EXPECT_EQ(facts.problem, told);
    EXPECT_TRUE(facts.is_translated);
    EXPECT_EQ(facts.release, "");
  }
  fake_.core->facts_of_peers = {};
  EXPECT_EQ(machine_.peer_facts(own, Status::refused).problem, PeerProblem::none) << "no engine has answered";
  EXPECT_EQ(machine_.peer_facts(EndPoint(), Status::refused).problem, PeerProblem::none);
}

TEST_F(MachineTest, CallsInTheWrongStateAreRefused) {
  EXPECT_EQ(machine_.create_end_point(kAddress).error().status, Status::bad_state);
  start();
  EXPECT_EQ(machine_.start(kAddress).error().status, Status::bad_state);
  EXPECT_EQ(machine_.close().error().status, Status::bad_state);
  const unsigned cpu = 0;
  EXPECT_EQ(machine_.confine({&cpu, 1}).error().status, Status::bad_state);
  ASSERT_TRUE(machine_.stop_and_wait(StopMode::abort));
  EXPECT_EQ(machine_.stop(StopMode::abort).error().status, Status::bad_state);
  EXPECT_EQ(machine_.start(kAddress).error().status, Status::bad_state);
  EXPECT_TRUE(machine_.close());
  EXPECT_EQ(machine_.state(), MachineState::undefined);
  EXPECT_EQ(machine_.close().error().status, Status::bad_state);
  EXPECT_EQ(machine_.stop(StopMode::abort).error().status, Status::bad_state);
  EXPECT_NE(machine_.start(kAddress).error().message.find("it is closed"), std::string::npos);
}

TEST_F(MachineTest, StopBeforeStartIsImmediate) {
  EXPECT_TRUE(machine_.stop(StopMode::drain));
  EXPECT_EQ(machine_.state(), MachineState::stopped);
  EXPECT_EQ(machine_events_, (Events{{kChange, MachineState::stopped}}));
  EXPECT_TRUE(machine_.close());
}

TEST_F(MachineTest, StopWhileStartingIsRemembered) {
  std::latch may_attach(1);
  fake_.state->attach = [&](const base::SocketAddress&, const engine::EngineOptions&) {
    may_attach.wait();
    return Result<std::shared_ptr<engine::Core>>(fake_.core);
  };
  ASSERT_TRUE(machine_.start(kAddress));
  EXPECT_EQ(machine_.state(), MachineState::starting);
  EXPECT_TRUE(machine_.stop(StopMode::drain));
  EXPECT_EQ(machine_.state(), MachineState::starting);
  may_attach.count_down();
  while (machine_.state() != MachineState::stopped) std::this_thread::yield();
  EXPECT_TRUE(machine_.close());
  EXPECT_EQ(machine_events_, (Events{{kChange, MachineState::started}, {kChange, MachineState::stopped}}));
}

TEST_F(MachineTest, AStartThatFailsWhileStoppingJustFails) {
  std::latch may_attach(1);
  fake_.state->attach = [&](const base::SocketAddress&, const engine::EngineOptions&) {
    may_attach.wait();
    return Result<std::shared_ptr<engine::Core>>(std::unexpected(Error{Status::in_use, 98, "taken by a test"}));
  };
  ASSERT_TRUE(machine_.start(kAddress));
  std::jthread releaser([&] { may_attach.count_down(); });
  const auto stopped = machine_.stop_and_wait(StopMode::abort);
  EXPECT_EQ(machine_.state(), MachineState::failed);
  EXPECT_FALSE(stopped);
  ASSERT_TRUE(machine_.close());
  EXPECT_EQ(machine_events_, (Events{{kChange, MachineState::failed}}));
}

TEST_F(MachineTest, MalformedAddressFailsAtOnceWithoutEvent) {
  const auto started = machine_.start("10.0.0.5@udp:1:34");
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().status, Status::invalid);
  EXPECT_EQ(machine_.state(), MachineState::failed);
  EXPECT_EQ(machine_.failure().message, started.error().message);
  EXPECT_TRUE(machine_events_.empty());
  EXPECT_TRUE(machine_.close());
}

TEST_F(MachineTest, FailuresOfTheStartAreTold) {
  const auto started = machine_.start_and_wait("127.0.0.1@udp:20480:99:1");
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().status, Status::invalid);
  EXPECT_NE(started.error().message.find("portal 99"), std::string::npos);
  EXPECT_EQ(machine_events_, (Events{{kChange, MachineState::failed}}));
  EXPECT_EQ(machine_.state(), MachineState::failed);
}

TEST_F(MachineTest, AddressInUseAndDynamicTmids) {
  start();
  TransferMachine second(fake_.domain), third(fake_.domain), fourth(fake_.domain);
  EXPECT_EQ(second.start_and_wait(kAddress).error().status, Status::in_use);
  EXPECT_EQ(third.start_and_wait("127.0.0.1@udp:*:34:*").value().address(), "127.0.0.1@udp:20480:34:4095");
  EXPECT_EQ(fourth.start_and_wait("127.0.0.1@udp:20480:34:*").value().address(), "127.0.0.1@udp:20480:34:4094");
}

TEST_F(MachineTest, EndPointTextsAreChecked) {
  start();
  EXPECT_EQ(machine_.create_end_point("10.0.0.9@udp:1:34:*").error().status, Status::invalid);
  EXPECT_EQ(machine_.create_end_point("10.0.0.9@udp:*:34:1").error().status, Status::invalid);
  EXPECT_EQ(machine_.create_end_point("10.0.0.9@udp:1:64:1").error().status, Status::invalid);
  EXPECT_EQ(machine_.create_end_point("10.0.0.9").error().status, Status::invalid);
  EXPECT_EQ(machine_.create_end_point("0@lo:1:34:1").error().status, Status::unreachable);
  EXPECT_EQ(machine_.create_end_point("[::1]@udp:1:34:1").error().status, Status::unreachable);
}

TEST_F(MachineTest, ConfinementIsCheckedAtTheStart) {
  EXPECT_EQ(machine_.confine({}).error().status, Status::invalid);
  const unsigned absent = 100000;
  EXPECT_TRUE(machine_.confine({&absent, 1}));
  const auto started = machine_.start_and_wait(kAddress);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().status, Status::not_available);
  EXPECT_NE(started.error().message.find("100000"), std::string::npos);
}

TEST_F(MachineTest, DrainWaitsForTheBuffersAndAbortCancelsThem) {
  start();
  const auto one = buffer(), two = buffer();
  ASSERT_EQ(machine_.add(*one, PassiveReceive{}), Status::ok);
  ASSERT_EQ(machine_.add(*two, PassiveReceive{}), Status::ok);
  ASSERT_TRUE(machine_.stop(StopMode::drain));
  EXPECT_EQ(machine_.state(), MachineState::stopping);
  EXPECT_EQ(machine_.stop(StopMode::drain).error().status, Status::bad_state);
  EXPECT_EQ(machine_.add(*buffer(), PassiveReceive{}), Status::bad_state);
  fake_.core->complete(Status::ok, 5);
  record_.wait_for(1);
  EXPECT_EQ(machine_.state(), MachineState::stopping);
  ASSERT_TRUE(machine_.stop_and_wait(StopMode::abort));
  const auto entries = record_.entries();
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].status, Status::ok);
  EXPECT_EQ(entries[1].status, Status::canceled);
  EXPECT_EQ(machine_.statistics().of(QueueKind::passive_bulk_receive).deletes, 1U);
  EXPECT_EQ(machine_events_.back().second, MachineState::stopped);
}

TEST_F(MachineTest, WhoeverWaitsForTheStopDeliversWhatWasSynchronous) {
  start_synchronous();
  const auto one = buffer();
  ASSERT_EQ(machine_.add(*one, PassiveReceive{}), Status::ok);
  ASSERT_TRUE(machine_.stop_and_wait(StopMode::abort));
  EXPECT_EQ(record_.entries().at(0).status, Status::canceled);
  EXPECT_EQ(machine_.deliver_all().error(), Status::bad_state);
}

TEST_F(MachineTest, StopInsideACallbackDoesNotWait) {
  start();
  const auto one = Buffer::allocate(fake_.domain, 10).value();
  std::latch done(1);
  one->set_callback([&](const BufferEvent&) {
    EXPECT_EQ(machine_.stop_and_wait(StopMode::abort).error().status, Status::bad_state);
    EXPECT_EQ(machine_.close().error().status, Status::bad_state);
    EXPECT_TRUE(machine_.stop(StopMode::abort));
    done.count_down();
  });
  ASSERT_EQ(machine_.add(*one, PassiveReceive{}), Status::ok);
  fake_.core->complete(Status::ok);
  done.wait();
  while (machine_.state() != MachineState::stopped) std::this_thread::yield();
}

TEST_F(MachineTest, CloseRefusesWhileEndPointsAreHeld) {
  EndPoint held = start();
  ASSERT_TRUE(machine_.stop_and_wait(StopMode::drain));
  EXPECT_EQ(machine_.close().error().status, Status::bad_state);
  held = EndPoint();
  EXPECT_TRUE(machine_.close());
}

TEST_F(MachineTest, DestructionStopsAndDeliversTheRest) {
  const auto one = buffer(), two = buffer();
  {
    TransferMachine machine(fake_.domain);
    ASSERT_TRUE(machine.start_and_wait(kAddress));
    ASSERT_EQ(machine.add(*one, PassiveReceive{}), Status::ok);
    ASSERT_EQ(machine.add(*two, MessageReceive{}), Status::ok);
  }
  EXPECT_EQ(record_.entries().size(), 2U);
  EXPECT_FALSE(one->is_queued());
  EXPECT_EQ(fake_.core->ports_open(), 0U);
  EXPECT_EQ(fake_.core->reserved(), 0U);
}

TEST_F(MachineTest, DestructionInsideACallback) {
  std::atomic<int> started = 0;
  auto machine = std::make_unique<TransferMachine>(fake_.domain, [&](const MachineEvent&) { ++started; });
  ASSERT_TRUE(machine->start_and_wait(kAddress));
  const auto one = Buffer::allocate(fake_.domain, 10).value();
  const auto two = buffer();
  one->set_callback([&](const BufferEvent&) { machine.reset(); });
  ASSERT_EQ(machine->add(*one, PassiveReceive{}), Status::ok);
  ASSERT_EQ(machine->add(*two, PassiveReceive{}), Status::ok);
  fake_.core->complete(Status::ok);
  EXPECT_EQ(record_.wait_for(1).at(0).status, Status::canceled);
  while (fake_.core->ports_open() != 0) std::this_thread::yield();
  EXPECT_EQ(started, 1);
}

TEST_F(MachineTest, DestructionInsideACallbackOfSynchronousDelivery) {
  auto machine = std::make_unique<TransferMachine>(fake_.domain);
  ASSERT_TRUE(machine->deliver_synchronously());
  ASSERT_TRUE(machine->start_and_wait(kAddress));
  const auto one = Buffer::allocate(fake_.domain, 10).value();
  one->set_callback([&](const BufferEvent&) { machine.reset(); });
  ASSERT_EQ(machine->add(*one, PassiveReceive{}), Status::ok);
  fake_.core->complete(Status::ok);
  TransferMachine* const own = machine.get();
  EXPECT_EQ(own->deliver_all().value(), 1U);
  EXPECT_EQ(fake_.core->ports_open(), 0U);
}

TEST_F(MachineTest, TheDomainKnowsItsMachines) {
  FakeDomain fake;
  TransferMachine machine(fake.domain);
  EXPECT_EQ(fake.domain.close().error().status, Status::bad_state);
  EXPECT_TRUE(machine.close());
  EXPECT_TRUE(fake.domain.close());
  TransferMachine late(fake.domain);
  EXPECT_EQ(late.state(), MachineState::undefined);
  EXPECT_EQ(late.start(kAddress).error().status, Status::bad_state);
}

TEST(TransferMachineFigures, AreToldEverySoOften) {
  FakeDomain fake;
  std::atomic<int> told = 0;
  std::string line;
  TransferMachine machine(fake.domain, [&](const MachineEvent& event) {
    if (event.kind != MachineEvent::Kind::statistics) return;
    if (++told == 2) line = event.text;
  });
  EXPECT_EQ(machine.report_statistics(Duration(1)).error().status, Status::invalid);
  ASSERT_TRUE(machine.report_statistics(std::chrono::milliseconds(1)));
  ASSERT_TRUE(machine.start_and_wait("127.0.0.1@udp:20480:34:1"));
  EXPECT_EQ(machine.report_statistics(std::chrono::seconds(1)).error().status, Status::bad_state);
  const auto inbox = Buffer::allocate(fake.domain, 100).value();
  ASSERT_EQ(inbox->set_callback([](const BufferEvent&) {}), Status::ok);
  ASSERT_EQ(machine.add(*inbox, MessageReceive{}), Status::ok);
  while (told < 4) std::this_thread::yield();
  ASSERT_TRUE(machine.stop_and_wait(StopMode::abort));
  EXPECT_TRUE(line.starts_with("machine=127.0.0.1@udp:20480:34:1 dropped=0 ")) << line;
}

TEST(TransferMachineFigures, AreALine) {
  Statistics statistics;
  EXPECT_EQ(to_record(statistics), "");
  statistics.queues[1] = {.adds = 3, .deletes = 1, .successes = 2, .failures = 1, .bytes_total = 30, .bytes_max = 20};
  EXPECT_EQ(to_record(statistics),
            "message_send.adds=3 message_send.deletes=1 message_send.successes=2 message_send.failures=1 "
            "message_send.ns_in_queue=0 message_send.bytes=30 message_send.bytes_max=20");
}

}  // namespace
}  // namespace fairlead::net
