// Start and stop, deadlines and synchronous delivery: the rows tm_initfini, tm_startstop, sync, timeout and fail of
// spec/motr.md 8.1, over each path.

#include <atomic>
#include <latch>
#include <set>
#include <span>
#include <thread>

#include <fmt/format.h>
#include <sys/socket.h>

#include "base/file_descriptor.hpp"
#include "net/net_address.hpp"
#include "tests/net_pair.hpp"

namespace fairlead::tests {
namespace {

using net::Buffer;
using net::Domain;
using net::MachineState;
using net::MessageReceive;
using net::MessageSend;
using net::PassiveReceive;
using net::PassiveSend;
using net::QueueKind;
using net::StopMode;
using net::TransferMachine;
using std::chrono::hours;
using std::chrono::milliseconds;

class NetDelivery : public NetPair {
 protected:
  static Instant in(Duration time) { return Instant::clock::now() + time; }
};

TEST_P(NetDelivery, AMachineCanBeMadeAgain) {
  const unsigned cpu = 0;
  for (int life = 0; life < 3; ++life) {
    TransferMachine machine(*domain_);
    EXPECT_TRUE(machine.confine({&cpu, 1}));
    EXPECT_TRUE(machine.confine({&cpu, 1}));
    EXPECT_EQ(machine.start_and_wait(near_at("34:101")).value().address(), near_at("34:101"));
    EXPECT_TRUE(machine.stop_and_wait(StopMode::abort));
    EXPECT_TRUE(machine.close());
    EXPECT_EQ(machine.state(), MachineState::undefined);
  }
}

TEST_P(NetDelivery, DynamicTmidsCountDownAndFillHoles) {
  std::vector<std::unique_ptr<TransferMachine>> machines;
  std::vector<Domain> domains;
  for (int i = 0; i < 3; ++i) {
    domains.push_back(Domain::open().value());
    machines.push_back(std::make_unique<TransferMachine>(domains.back()));
    const auto own = machines.back()->start_and_wait(near_at("40:*"));
    ASSERT_TRUE(own) << own.error().message;
    EXPECT_EQ(own->address(), near_at(fmt::format("40:{}", 4095 - i)));
  }
  ASSERT_TRUE(machines[1]->stop_and_wait(StopMode::abort));
  TransferMachine again(*domain_);
  EXPECT_EQ(again.start_and_wait(near_at("40:*")).value().address(), near_at("40:4094"));
}

TEST_P(NetDelivery, AStarForThePidIsAPidOfTheRange) {
  TransferMachine machine(*domain_);
  const auto own = machine.start_and_wait(GetParam().nid + ":*:34:*");
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_GE(net::parse_address(own->address()).value().engine.port, 1024);
}

TEST_P(NetDelivery, AnAddressBelongsToOne) {
  TransferMachine second(*domain_);
  const auto refused = second.start_and_wait(near_address_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, Status::in_use);
  EXPECT_NE(refused.error().message.find("in use"), std::string::npos) << refused.error().message;
  EXPECT_EQ(second.state(), MachineState::failed);
  // Free again at `stopped`.
  ASSERT_TRUE(near().stop_and_wait(StopMode::abort));
  TransferMachine third(*domain_);
  EXPECT_TRUE(third.start_and_wait(near_address_));
}

// Where a pid is a port of the kernel's, and an address may be another host's.
class NetDeliveryByKernel : public NetDelivery {};

TEST_P(NetDeliveryByKernel, APidOfAnotherProgramIsInUse) {
  const std::uint16_t pid = free_pid(GetParam().nid);
  const std::string address = fmt::format("{}:{}:34:1", GetParam().nid, pid);
  const auto engine = net::parse_address(address).value().engine;
  const int family = engine.is_v4() ? AF_INET : AF_INET6;
  const base::FileDescriptor socket(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage kernel{};
  const socklen_t length = engine.to_kernel(reinterpret_cast<sockaddr*>(&kernel), family);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&kernel), length), 0);
  TransferMachine machine(*domain_);
  const auto refused = machine.start_and_wait(address);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, Status::in_use) << refused.error().message;
}

TEST_P(NetDeliveryByKernel, OnlyLocalAddressesStart) {
  const bool is_v4 = GetParam().nid.find('[') == std::string::npos;
  TransferMachine machine(*domain_);
  const auto refused = machine.start_and_wait(is_v4 ? "192.0.2.1@udp:*:34:1" : "[2001:db8::1]@udp:*:34:1");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, Status::not_available) << refused.error().message;
  EXPECT_NE(refused.error().message.find("address not local"), std::string::npos) << refused.error().message;
}

TEST_P(NetDelivery, DeadlinesEndEachPassiveQueue) {
  const auto message = buffer(100, far_record_), writable = buffer(100, far_record_),
             readable = buffer(100, far_record_);
  const auto untimed = buffer(100, far_record_), distant = buffer(100, far_record_);
  const Instant deadline = in(milliseconds(20));
  ASSERT_EQ(far().add(*untimed, PassiveReceive{}), Status::ok);
  ASSERT_EQ(far().add(*distant, PassiveReceive{.deadline = in(hours(1))}), Status::ok);
  ASSERT_EQ(far().add(*message, MessageReceive{.deadline = deadline}), Status::ok);
  ASSERT_EQ(far().add(*writable, PassiveReceive{.deadline = deadline}), Status::ok);
  ASSERT_EQ(far().add(*readable, PassiveSend{.deadline = deadline}), Status::ok);
  for (const auto& entry : far_record_.wait_for(3)) EXPECT_EQ(entry.status, Status::timed_out);
  EXPECT_GE(Instant::clock::now(), deadline);
  EXPECT_TRUE(untimed->is_queued());
  EXPECT_TRUE(distant->is_queued());
  for (const QueueKind kind :
       {QueueKind::message_receive, QueueKind::passive_bulk_receive, QueueKind::passive_bulk_send}) {
    EXPECT_EQ(far().statistics().of(kind).deletes, 0U);
    EXPECT_EQ(far().statistics().of(kind).failures, 1U);
  }
}

TEST_P(NetDelivery, TheDeadlineOfAHalfFilledBufferIsTheBuffers) {
  const auto inbox = buffer(1000, far_record_), one = buffer(10, near_record_);
  ASSERT_EQ(far().add(*inbox, MessageReceive{.size_min = 10, .messages_max = 9, .deadline = in(milliseconds(300))}),
            Status::ok);
  ASSERT_EQ(near().add(*one, MessageSend{.to = to_far()}), Status::ok);
  const auto entries = far_record_.wait_for(2);
  EXPECT_EQ(entries[0].status, Status::ok);
  EXPECT_FALSE(entries[0].is_final);
  EXPECT_EQ(entries[1].status, Status::timed_out);
}

TEST_P(NetDelivery, AMessageBeforeTheDeadlineIsASuccessAndOneAfterItFindsNoBuffer) {
  const auto early = buffer(8, far_record_), late = buffer(8, far_record_), one = buffer(8, near_record_);
  ASSERT_EQ(far().add(*early, MessageReceive{.deadline = in(hours(1))}), Status::ok);
  ASSERT_EQ(near().add(*one, MessageSend{.to = to_far()}), Status::ok);
  EXPECT_EQ(far_record_.wait_for(1).at(0).status, Status::ok);
  EXPECT_EQ(near_record_.wait_for(1).at(0).status, Status::ok);
  ASSERT_EQ(far().add(*late, MessageReceive{.deadline = in(milliseconds(1))}), Status::ok);
  EXPECT_EQ(far_record_.wait_for(2).at(1).status, Status::timed_out);
  ASSERT_EQ(near().add(*one, MessageSend{.to = to_far()}), Status::ok);
  EXPECT_EQ(near_record_.wait_for(2).at(1).status, Status::ok);
  EXPECT_EQ(far().statistics().of(QueueKind::message_receive).successes, 1U);
  EXPECT_EQ(far().statistics().of(QueueKind::message_receive).failures, 1U);
}

// Successes and deadlines at about the same moment, whichever comes first: each buffer ends once, with a message or
// without, and no message comes twice. One that its own buffer did not wait for may find the next.
TEST_P(NetDelivery, DeadlinesRaceWithSuccess) {
  constexpr std::uint64_t kRounds = 40;
  std::uint64_t received = 0, timed_out = 0, too_late = 0;
  std::set<std::uint64_t> numbers;
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    net::Record record;
    const auto inbox = buffer(8, record), one = buffer(8, near_record_);
    one->write(0, std::as_bytes(std::span(&round, 1)));
    const Status added = far().add(*inbox, MessageReceive{.deadline = in(std::chrono::microseconds(50 + round * 25))});
    if (added != Status::ok) {
      EXPECT_EQ(added, Status::too_late);
      ++too_late;
      continue;
    }
    ASSERT_EQ(near().add(*one, MessageSend{.to = to_far()}), Status::ok);
    const auto entries = record.wait_for(1);
    ASSERT_EQ(entries.size(), 1U);
    EXPECT_TRUE(entries[0].is_final);
    if (entries[0].status == Status::ok) {
      ++received;
      std::uint64_t number = kRounds;
      EXPECT_EQ(entries[0].length, 8U);
      inbox->read(0, std::as_writable_bytes(std::span(&number, 1)));
      EXPECT_LE(number, round);
      EXPECT_TRUE(numbers.insert(number).second) << number << " came twice";
    } else {
      ++timed_out;
      EXPECT_EQ(entries[0].status, Status::timed_out);
      EXPECT_EQ(entries[0].length, 0U);
    }
    near_record_.wait_for(round + 1 - too_late);
  }
  EXPECT_EQ(received + timed_out + too_late, kRounds);
  EXPECT_EQ(far().statistics().of(QueueKind::message_receive).successes, received);
  EXPECT_EQ(far().statistics().of(QueueKind::message_receive).failures, timed_out);
}

TEST_P(NetDelivery, MessagesStayPendingUntilTheyAreDelivered) {
  TransferMachine machine(*domain_);
  ASSERT_TRUE(machine.deliver_synchronously());
  ASSERT_TRUE(machine.start_and_wait(far_at("34:9")));
  std::vector<std::thread::id> threads;
  const auto inbox = buffer(400, far_record_);
  inbox->set_callback([&](const net::BufferEvent&) { threads.push_back(std::this_thread::get_id()); });
  ASSERT_EQ(machine.add(*inbox, MessageReceive{.size_min = 100, .messages_max = 4}), Status::ok);
  EXPECT_FALSE(machine.pending());
  EXPECT_EQ(machine.deliver_all().value(), 0U);

  std::atomic<int> signals = 0;
  ASSERT_EQ(machine.notify([&] { ++signals; }), Status::ok);
  const auto one = buffer(100, near_record_);
  const auto to = near().create_end_point(far_at("34:9")).value();
  for (std::size_t i = 1; i <= 4; ++i) {
    ASSERT_EQ(near().add(*one, MessageSend{.to = to}), Status::ok);
    near_record_.wait_for(i);
    while (one->is_queued()) std::this_thread::yield();
  }
  while (signals == 0) std::this_thread::yield();
  EXPECT_TRUE(threads.empty());
  EXPECT_TRUE(machine.pending());
  EXPECT_TRUE(machine.wait(kNever).value());
  std::size_t delivered = 0;
  while (delivered < 4) delivered += machine.deliver_all().value();
  EXPECT_EQ(threads, std::vector<std::thread::id>(4, std::this_thread::get_id()));
  EXPECT_EQ(signals, 1);
  EXPECT_FALSE(machine.pending());
}

// One thread drives both ends, nobody else: polling makes progress.
TEST_P(NetDelivery, PollingAloneMakesProgress) {
  TransferMachine left(*domain_), right(*domain_);
  ASSERT_TRUE(left.deliver_synchronously());
  ASSERT_TRUE(right.deliver_synchronously());
  ASSERT_TRUE(left.start_and_wait(near_at("34:11")));
  ASSERT_TRUE(right.start_and_wait(far_at("34:12")));
  const auto ping = buffer(8, near_record_), pong = buffer(8, far_record_);
  const auto to = left.create_end_point(far_at("34:12")).value();
  for (std::size_t round = 1; round <= 50; ++round) {
    ASSERT_EQ(right.add(*pong, MessageReceive{}), Status::ok);
    ASSERT_EQ(left.add(*ping, MessageSend{.to = to}), Status::ok);
    while (near_record_.entries().size() < round || far_record_.entries().size() < round) {
      left.deliver_all().value();
      right.deliver_all().value();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Paths, NetDeliveryByKernel,
                         ::testing::ValuesIn(net_paths_where([](const NetPath& path) { return path.nid != "0@lo"; })),
                         [](const auto& test) { return test.param.name; });
INSTANTIATE_TEST_SUITE_P(Paths, NetDelivery, ::testing::ValuesIn(net_paths()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace fairlead::tests
