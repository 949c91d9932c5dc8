// Start, stop and addresses of transfer machines over each path, as Motr's tests tm_initfini and tm_startstop require.

#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/file_descriptor.hpp"
#include "net/net_address.hpp"
#include "tests/net_delivery.hpp"

namespace fairlead::tests {
namespace {

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

TEST_P(NetDelivery, AConfinedMachineConfinesItsOwnThreadOnly) {
  const cpu_set_t all = cpus_of(0);
  unsigned first = 0;
  while (!CPU_ISSET(first, &all)) ++first;
  cpu_set_t only_first;
  CPU_ZERO(&only_first);
  CPU_SET(first, &only_first);
  const std::set<pid_t> before = own_threads();
  std::atomic<pid_t> teller = 0;
  TransferMachine machine(*domain_, [&](const net::MachineEvent&) { teller = ::gettid(); });
  ASSERT_TRUE(machine.confine({&first, 1}));
  ASSERT_TRUE(machine.start_and_wait(GetParam().nid + ":*:34:*"));  // with an engine of its own, except at 0@lo
  for (const pid_t thread : own_threads()) {
    const cpu_set_t its = cpus_of(thread);
    if (thread == teller) {
      EXPECT_TRUE(CPU_EQUAL(&its, &only_first));
    } else if (!before.contains(thread)) {
      EXPECT_TRUE(CPU_EQUAL(&its, &all)) << "a thread beside the machine's is confined with it";
    }
  }
  EXPECT_FALSE(before.contains(teller));
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
