// Start, stop and addresses of transfer machines over each path, as Motr's tests tm_initfini and tm_startstop require.

#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "base/file_descriptor.hpp"
#include "net/net_address.hpp"
#include "tests/net_delivery.hpp"

namespace fairlead::tests {
namespace {

using net::Buffer;
using net::Domain;
using net::MachineState;
using net::StopMode;
using net::TransferMachine;

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

std::set<pid_t> own_threads() {
  std::set<pid_t> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
    all.insert(std::stoi(entry.path().filename()));
  return all;
}

cpu_set_t cpus_of(pid_t thread) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  ::sched_getaffinity(thread, sizeof cpus, &cpus);
  return cpus;
}

std::vector<unsigned> own_cpus() {
  const cpu_set_t mask = cpus_of(0);
  std::vector<unsigned> all;
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &mask)) all.push_back(cpu);
  return all;
}

::testing::AssertionResult runs_on(const cpu_set_t& cpus, unsigned cpu) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(cpu, &only);
  if (CPU_EQUAL(&cpus, &only)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "may run on " << CPU_COUNT(&cpus) << " processors, not just on " << cpu;
}

TEST_P(NetDelivery, AConfinedMachineConfinesItsOwnThreadOnly) {
  const cpu_set_t all = cpus_of(0);
  const unsigned first = own_cpus().front();
  const std::set<pid_t> before = own_threads();
  std::atomic<pid_t> teller = 0;
  TransferMachine machine(*domain_, [&](const net::MachineEvent&) { teller = ::gettid(); });
  ASSERT_TRUE(machine.confine({&first, 1}));
  ASSERT_TRUE(machine.start_and_wait(GetParam().nid + ":*:34:*"));  // with an engine of its own, except at 0@lo
  for (const pid_t thread : own_threads()) {
    const cpu_set_t its = cpus_of(thread);
    if (thread == teller) {
      EXPECT_TRUE(runs_on(its, first));
    } else if (!before.contains(thread)) {
      EXPECT_TRUE(CPU_EQUAL(&its, &all)) << "a thread beside the machine's is confined with it";
    }
  }
  EXPECT_FALSE(before.contains(teller));
}

// Machines of one engine, each in a domain of its own.
TEST_P(NetDelivery, TheLastConfinementOfEachMachineCounts) {
  const std::vector<unsigned> all = own_cpus();
  std::array<std::atomic<pid_t>, 3> tellers{};
  std::vector<Domain> domains;
  std::vector<std::unique_ptr<TransferMachine>> machines;
  const auto cpu_of = [&](std::size_t machine) { return all[machine % all.size()]; };
  for (std::size_t i = 0; i < tellers.size(); ++i) {
    domains.push_back(Domain::open(settings()).value());
    machines.push_back(std::make_unique<TransferMachine>(
        domains.back(), [&teller = tellers[i]](const net::MachineEvent&) { teller = ::gettid(); }));
    const unsigned cpu = cpu_of(i);
    ASSERT_TRUE(machines[i]->confine(all));
    ASSERT_TRUE(machines[i]->confine({&cpu, 1}));
    ASSERT_TRUE(machines[i]->start_and_wait(near_at("36:*")));
  }
  for (std::size_t i = 0; i < tellers.size(); ++i) EXPECT_TRUE(runs_on(cpus_of(tellers[i]), cpu_of(i)));
}

// With synchronous delivery that is the thread of notify(), and no other one.
TEST_P(NetDelivery, ConfinementBindsTheThreadOfNotify) {
  const unsigned cpu = own_cpus().back();
  TransferMachine machine(*domain_);
  ASSERT_TRUE(machine.deliver_synchronously());
  ASSERT_TRUE(machine.confine({&cpu, 1}));
  ASSERT_TRUE(machine.start_and_wait(far_at("36:1")));
  const auto inbox = buffer(8, far_record_), one = buffer(8, near_record_);
  ASSERT_EQ(machine.add(*inbox, net::MessageReceive{}), Status::ok);
  std::atomic<pid_t> signaller = 0;
  ASSERT_EQ(machine.notify([&] { signaller = ::gettid(); }), Status::ok);
  ASSERT_EQ(near().add(*one, net::MessageSend{.to = near().create_end_point(far_at("36:1")).value()}), Status::ok);
  while (signaller == 0) std::this_thread::yield();
  EXPECT_TRUE(runs_on(cpus_of(signaller), cpu));
  EXPECT_NE(signaller, ::gettid());
  EXPECT_EQ(own_cpus().back(), cpu);
  EXPECT_EQ(machine.deliver_all(), 1U);
}

// Each domain has its own buffers. Domains share engines, but none depends on another.
TEST_P(NetDelivery, MachinesOfSeveralDomainsTransferAndOutliveEachOther) {
  Domain other = Domain::open(settings()).value();
  net::Record record;
  const auto mine = Buffer::allocate(other, 100).value();
  ASSERT_EQ(mine->set_callback(record.callback()), Status::ok);
  const auto theirs = buffer(100, far_record_);
  {
    TransferMachine machine(other);
    ASSERT_TRUE(machine.start_and_wait(near_at("36:1")));
    EXPECT_EQ(machine.add(*theirs, net::PassiveReceive{}), Status::invalid);
    EXPECT_EQ(far().add(*mine, net::PassiveReceive{}), Status::invalid);
    ASSERT_EQ(far().add(*theirs, net::PassiveReceive{}), Status::ok);
    fill(*mine, 100, 1);
    ASSERT_EQ(machine.add(*mine, net::ActiveSend{.descriptor = theirs->descriptor()}), Status::ok);
    EXPECT_EQ(record.wait_for(1).at(0).status, Status::ok);
    EXPECT_EQ(far_record_.wait_for(1).at(0).status, Status::ok);
    EXPECT_TRUE(holds(*theirs, 0, 100, 1));
    EXPECT_EQ(other.close().error().status, Status::bad_state) << "it has a machine";
    ASSERT_EQ(machine.add(*mine, net::MessageReceive{}), Status::ok);
    ASSERT_EQ(far().add(*theirs, net::MessageSend{.to = far().create_end_point(near_at("36:1")).value()}), Status::ok);
    EXPECT_EQ(record.wait_for(2).at(1).sender, far_address_);
    EXPECT_EQ(far_record_.wait_for(2).at(1).status, Status::ok);
  }
  const auto one = buffer(100, near_record_);
  ASSERT_EQ(far().add(*theirs, net::MessageReceive{}), Status::ok);
  ASSERT_EQ(near().add(*one, net::MessageSend{.to = to_far()}), Status::ok);
  EXPECT_EQ(far_record_.wait_for(3).at(2).status, Status::ok);
}

TEST_P(NetDelivery, SettingsThatMeanNothingAreTold) {
  std::string told;
  std::atomic<int> diagnostics = 0;
  const auto tell = [&](const net::MachineEvent& event) {
    if (event.kind != net::MachineEvent::Kind::diagnostic) return;
    told = event.text;
    ++diagnostics;
  };
  net::DomainSettings settings{.engine = {{"path", GetParam().path}, {"give_up_after", "4321"}}};
  if (!GetParam().fault.empty()) settings.engine.emplace_back("fault", GetParam().fault);
  Domain other = Domain::open(settings).value();
  {
    TransferMachine machine(other, tell), same(*domain_, tell);
    ASSERT_TRUE(machine.start_and_wait(near_at("35:*")));
    ASSERT_TRUE(same.start_and_wait(near_at("35:*")));
  }
  EXPECT_EQ(diagnostics, 1);
  EXPECT_NE(told.find("mean nothing: give_up_after;"), std::string::npos) << told;
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
  // The address is free once the machine has stopped.
  ASSERT_TRUE(near().stop_and_wait(StopMode::abort));
  TransferMachine third(*domain_);
  EXPECT_TRUE(third.start_and_wait(near_address_));
}

// Paths on which a pid is a kernel port, and on which an address can belong to another host.
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

INSTANTIATE_TEST_SUITE_P(Paths, NetDeliveryByKernel,
                         ::testing::ValuesIn(net_paths_where([](const NetPath& path) { return path.nid != "0@lo"; })),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace fairlead::tests
