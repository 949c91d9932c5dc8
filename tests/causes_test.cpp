// What a user reads when something is wrong on this host or on the way: the cause is true, and the remedy fits it.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "base/network_namespace.hpp"
#include "tests/attacked_pair.hpp"
#include "tests/child_process.hpp"
#include "tests/kernel_queue.hpp"
#include "tests/two_namespaces.hpp"

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

constexpr auto kStartsWithin = 20s, kFailsWithin = 60s;

Words alone(const Words& words) {
  Words all{"unshare", ::geteuid() == 0 ? "-n" : "-Urn"};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

// The kernel has closed the server's connection, so the client need not guess.
TEST(Causes, AServerOfThisHostThatIsKilledHasEnded) {
  const std::string address = fmt::format("127.0.0.1@udp:{}:39:12", free_port());
  ChildProcess server({"env", "FAIRLEAD_PATH=shm", FAIRLEAD_COMMAND, "bulkping", "server", "--address", address});
  ASSERT_TRUE(server.wait_for_text("serving at", kStartsWithin)) << server.error_output();
  ChildProcess client({"env", "FAIRLEAD_PATH=shm", FAIRLEAD_COMMAND, "bulkping", "client", "--server", address,
                       "--loops", "100000000", "--bulk-size", "4K", "--bulk-timeout", "2", "--message-timeout", "2",
                       "--quiet"});
  const auto has_work = [&] { return cpu_time_of(server.pid()).value() > 100ms; };
  for (int look = 0; look < 4000 && client.wait(5ms) < 0 && !has_work(); ++look) continue;
  ASSERT_TRUE(has_work()) << client.error_output();
  server.send_signal(SIGKILL);
  EXPECT_EQ(server.wait(kStartsWithin), 128 + SIGKILL);
  EXPECT_EQ(client.wait(kFailsWithin), 1);
  EXPECT_THAT(client.error_output(), HasSubstr("was it killed, or did it crash?"));
}

TEST(Causes, WithoutLoopbackThereIsNoWayTo127) {
  const Finished client =
      run(alone({FAIRLEAD_COMMAND, "bulkping", "client", "--server", "127.0.0.1", "--loops", "1"}), kFailsWithin);
  EXPECT_EQ(client.exit_code, 1);
  EXPECT_THAT(client.error_output, AllOf(HasSubstr("cannot reach 127.0.0.1"), HasSubstr("ip link set lo up")));
  const Finished perf =
      run(alone({"env", "FAIRLEAD_PATH=udp", FAIRLEAD_COMMAND, "perf", "latency", "--path", "udp", "--seconds", "0.1"}),
          kFailsWithin);
  EXPECT_EQ(perf.exit_code, 1);
  EXPECT_THAT(perf.error_output, AllOf(HasSubstr("cannot reach 127."), HasSubstr("ip link set lo up")));
}

class CausesBetweenHosts : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto fault = two_.set_up()) GTEST_SKIP() << *fault;
  }
  TwoNamespaces two_;
};

// The kernel asks for the address (ARP), and nobody answers.
TEST_F(CausesBetweenHosts, AHostThatIsNotThereCannotBeReached) {
  const Finished client =
      run(two_.enter_first({FAIRLEAD_COMMAND, "bulkping", "client", "--server", "10.77.0.99", "--loops", "1"}),
          kFailsWithin);
  EXPECT_EQ(client.exit_code, 1);
  EXPECT_THAT(client.error_output, AllOf(HasSubstr("cannot reach 10.77.0.99:20480"), HasSubstr("no host answers")));
  EXPECT_THAT(client.error_output, Not(HasSubstr("nobody listens")));
}

// Its own subnet: the kernel asks for the hardware address, in vain, longer than the link waits.
TEST_F(CausesBetweenHosts, DoctorFindsNoHostAtAnAddress) {
  const Finished doctor = run(two_.enter_first({FAIRLEAD_COMMAND, "doctor", "10.77.0.98"}), kFailsWithin);
  EXPECT_EQ(doctor.exit_code, 1);
  EXPECT_THAT(doctor.output, AllOf(HasSubstr("no host answers at that address (ARP"), Not(HasSubstr("never heard"))));
}

// "No route" would send the user to the wrong place.
TEST_F(CausesBetweenHosts, AFirewallThatRejectsIsNamed) {
  for (const char* rule : {"add table inet wall", "add chain inet wall input { type filter hook input priority 0; }",
                           "add rule inet wall input udp dport 20480 reject with icmpx type admin-prohibited"})
    ASSERT_EQ(run(two_.enter_second({"nft", rule})).exit_code, 0) << rule;
  const Finished client =
      run(two_.enter_first({FAIRLEAD_COMMAND, "bulkping", "client", "--server", "10.77.0.2", "--loops", "1"}),
          kFailsWithin);
  EXPECT_EQ(client.exit_code, 1);
  EXPECT_THAT(client.error_output,
              AllOf(HasSubstr("a firewall rejects datagrams to 10.77.0.2:20480"), Not(HasSubstr("no route"))));
}

// In an open session: the kernel refuses to send from an address that this host no longer has.
TEST(Causes, AnOwnAddressThatGoesAwayIsNamed) {
  const auto network = base::make_network();
  if (!network) GTEST_SKIP() << network.error().message;
  const auto visit = base::NetworkVisit::enter(network->get());
  ASSERT_TRUE(visit) << visit.error().message;
  for (const char* words : {"link set lo up", "link add d0 type veth peer name d1", "address add 10.78.0.1/32 dev d0",
                            "address add 10.78.0.2/32 dev d0", "link set d0 up"})
    ASSERT_EQ(run({"sh", "-c", fmt::format("ip {}", words)}).exit_code, 0) << words;
  const Node::Settings soon{{"give_up_after", "1s"}};
  const Node here("10.78.0.1", soon), there("10.78.0.2", soon);
  std::vector<std::byte> bytes(8, std::byte{1}), inbox(64);
  const iovec memory{bytes.data(), bytes.size()}, room{inbox.data(), inbox.size()};
  const auto send = [&] {
    engine::OperationHandle name;
    EXPECT_EQ(here.core->send(here.port, {.to = there.name(), .part = {.memory = {&memory, 1}, .length = 8}}, name),
              Status::ok);
    const auto end = here.next();
    return end ? end->status : Status::timed_out;
  };
  engine::OperationHandle name;
  ASSERT_EQ(there.core->post_receive(there.port, {.memory = {&room, 1}, .size_min = 8}, name), Status::ok);
  ASSERT_EQ(send(), Status::ok);
  ASSERT_EQ(run({"ip", "address", "del", "10.78.0.1/32", "dev", "d0"}).exit_code, 0);
  EXPECT_EQ(send(), Status::silent);
  const std::string why = here.core->describe_peer(there.core->address());
  EXPECT_THAT(why, AllOf(HasSubstr("kernel refuses to send there"), HasSubstr("does it still have this engine's")));
}

// An engine is there, but not the machine: the path to it is not the cause.
TEST(Causes, AMachineThatTheProcessDoesNotHaveIsNamed) {
  for (const char* path : {"shm", "udp"}) {
    const std::string set = fmt::format("FAIRLEAD_PATH={}", path), at = fmt::format("127.0.0.1@udp:{}", free_port());
    ChildProcess agent({"env", set, FAIRLEAD_COMMAND, "nettest", "agent", "--address", at});
    ASSERT_TRUE(agent.wait_for_text("agent at", kStartsWithin)) << agent.error_output() << agent.output();
    const Finished client =
        run({"env", set, FAIRLEAD_COMMAND, "bulkping", "client", "--server", at, "--loops", "1"}, kFailsWithin);
    EXPECT_EQ(client.exit_code, 1);
    EXPECT_THAT(client.error_output,
                AllOf(HasSubstr(fmt::format("the process at {} has no transfer machine 39:12", at)),
                      Not(HasSubstr("last heard")), Not(HasSubstr("stopped?;"))))
        << path;
  }
}

// Messages pass, but the server cannot reach the client's memory at the address that the client names.
TEST_F(CausesBetweenHosts, ATranslatedAddressIsNamed) {
  if (const auto fault = two_.translate_first()) GTEST_SKIP() << *fault;
  ChildProcess server(two_.enter_second({FAIRLEAD_COMMAND, "bulkping", "server", "--address", "10.77.0.2", "--json"}));
  ASSERT_TRUE(server.wait_for_text("serving at", kStartsWithin)) << server.error_output();
  const Finished client = run(two_.enter_first({FAIRLEAD_COMMAND, "bulkping", "client", "--server", "10.77.0.2",
                                                "--loops", "1", "--message-timeout", "5", "--bulk-timeout", "5"}),
                              kFailsWithin);
  EXPECT_EQ(client.exit_code, 1);
  EXPECT_THAT(client.error_output, HasSubstr("between this engine and 10.77.0.2:20480, a NAT translates an address"));
  const Finished doctor = run(two_.enter_first({FAIRLEAD_COMMAND, "doctor", "10.77.0.2"}), kFailsWithin);
  EXPECT_EQ(doctor.exit_code, 1);
  EXPECT_THAT(doctor.output, HasSubstr("a NAT translates an address"));
  server.send_signal(SIGINT);
  EXPECT_EQ(server.wait(kStartsWithin), 0);
  EXPECT_THAT(server.error_output(), HasSubstr("between this engine and 10.77.0.9:"));
}

TEST_F(CausesBetweenHosts, AClientThatEndsIsNoTroubleForTheServer) {
  ChildProcess server(two_.enter_second(
      {"env", "FAIRLEAD_FLIGHT=stderr", FAIRLEAD_COMMAND, "bulkping", "server", "--address", "10.77.0.2", "--json"}));
  ASSERT_TRUE(server.wait_for_text("serving at", kStartsWithin)) << server.error_output();
  const Finished client =
      run(two_.enter_first({FAIRLEAD_COMMAND, "bulkping", "client", "--server", "10.77.0.2", "--loops", "3"}),
          kFailsWithin);
  EXPECT_EQ(client.exit_code, 0) << client.error_output;
  server.send_signal(SIGINT);
  EXPECT_EQ(server.wait(kStartsWithin), 0);
  EXPECT_THAT(client.error_output, Not(HasSubstr("NAT")));
  EXPECT_THAT(server.error_output(),
              AllOf(Not(HasSubstr("nobody listens")), Not(HasSubstr("the last ")), Not(HasSubstr("start it again"))));
}

}  // namespace
}  // namespace fairlead::tests
