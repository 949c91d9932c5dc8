// `fairlead doctor` reports what works, what does not and the remedy, as text and as JSON.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>

#include "tests/child_process.hpp"
#include "tests/two_namespaces.hpp"

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

TEST(Doctor, FindsThisHostWell) {
  const Finished finished = run({FAIRLEAD_COMMAND, "doctor"}, 60s);
  EXPECT_EQ(finished.exit_code, 0) << finished.output << finished.error_output;
  for (const char* topic : {"socket", "ports", "memory", "limits", "namespaces", "engine"})
    EXPECT_THAT(finished.output, HasSubstr(topic));
}

TEST(Doctor, SpeaksJson) {
  const Finished finished = run({FAIRLEAD_COMMAND, "doctor", "--json"}, 60s);
  const auto all = nlohmann::json::parse(finished.output);
  ASSERT_GT(all.size(), 5u);
  for (const auto& one : all) {
    EXPECT_NE(one.at("verdict"), "trouble") << one.dump();
    EXPECT_FALSE(one.at("topic").get<std::string>().empty());
    EXPECT_FALSE(one.at("text").get<std::string>().empty());
  }
}

TEST(Doctor, NamesPortsThatOthersHave) {
  const int taken = free_port();
  const std::string first = "FAIRLEAD_PORT_FIRST=" + std::to_string(taken);
  ChildProcess holder(
      {FAIRLEAD_COMMAND, "bulkping", "server", "--address", "127.0.0.1@udp:" + std::to_string(taken) + ":39:12"});
  ASSERT_TRUE(holder.wait_for_text("serving at", 20s)) << holder.error_output();
  const Finished finished = run({"env", first, "FAIRLEAD_PORT_COUNT=1", FAIRLEAD_COMMAND, "doctor"}, 60s);
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_THAT(finished.output, HasSubstr("all UDP ports from " + std::to_string(taken) + " to " +
                                         std::to_string(taken) + " are in use"));
  EXPECT_THAT(finished.output, HasSubstr("FAIRLEAD_PORT_FIRST"));
}

TEST(Doctor, NamesAVariableThatSetsNothing) {
  const Finished finished = run({"env", "FAIRLEAD_GIVEUP=1", FAIRLEAD_COMMAND, "doctor"}, 60s);
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_THAT(finished.output, HasSubstr("FAIRLEAD_GIVE_UP_AFTER"));
  EXPECT_THAT(finished.output, Not(HasSubstr("FAIRLEAD_GIVEUP=1")));  // no "ok" beside the complaint
}

struct BadSetting {
  Words variables;
  const char* told;
};

void PrintTo(const BadSetting& setting, std::ostream* out) {
  *out << setting.variables.back();
}

class DoctorsSettings : public testing::TestWithParam<BadSetting> {};

// No program of its kind can start with them, or they have no effect.
TEST_P(DoctorsSettings, AreRefused) {
  Words words{"env"};
  words.insert(words.end(), GetParam().variables.begin(), GetParam().variables.end());
  words.insert(words.end(), {FAIRLEAD_COMMAND, "doctor"});
  const Finished finished = run(words, 60s);
  EXPECT_EQ(finished.exit_code, 1) << finished.output;
  EXPECT_THAT(finished.output, AllOf(HasSubstr("TROUBLE"), HasSubstr(GetParam().told)));
}

INSTANTIATE_TEST_SUITE_P(
    Of, DoctorsSettings,
    testing::Values(BadSetting{{"FAIRLEAD_CORE=host", "FAIRLEAD_HOST=/nonexistent"}, "start fairleadd"},
                    BadSetting{{"FAIRLEAD_PORT_FIRST=65530", "FAIRLEAD_PORT_COUNT=4096"}, "end beyond 65535"},
                    BadSetting{{"FAIRLEAD_SHM_RING=100000"}, "FAIRLEAD_SHM_RING"},
                    BadSetting{{"FAIRLEAD_PATH=shm", "FAIRLEAD_SHM_DIRECTORY=/nonexistent"}, "/nonexistent"},
                    BadSetting{{"FAIRLEAD_SEAL=psk:/nonexistent"}, "/nonexistent"},
                    BadSetting{{"FAIRLEAD_DEVICE=1.2.3.4"}, "correct or unset FAIRLEAD_DEVICE"},
                    BadSetting{{"FAIRLEAD_DEVICE=127.0.0.1,1.2.3.4"}, "names 1.2.3.4, but no interface"},
                    BadSetting{{"FAIRLEAD_DEVICES=abc"}, "want 1 to 16"},
                    BadSetting{{"FAIRLEAD_EXPLAIN=yes"}, "want 1 or 0"},
                    BadSetting{{"FAIRLEAD_PERSONALITY=eth"}, "want roce or ib"}));

TEST(Doctor, WantsAPeerWithAName) {
  const Finished finished = run({FAIRLEAD_COMMAND, "doctor", ""}, 60s);
  EXPECT_EQ(finished.exit_code, 2) << finished.output;
  EXPECT_THAT(finished.error_output, HasSubstr("name a host, or leave PEER out"));
}

// The peer answers the first probe: it refuses all of them.
TEST(Doctor, NamesAPeerThatRefusesThisKey) {
  const std::string key = testing::TempDir() + "doctor_test.psk";
  ASSERT_EQ(run({FAIRLEAD_COMMAND, "keygen", "--psk", key}).exit_code, 0);
  const std::string at = "127.0.0.1@udp:" + std::to_string(free_port());
  ChildProcess server({"env", "FAIRLEAD_PATH=udp", "FAIRLEAD_SEAL=psk:" + key, FAIRLEAD_COMMAND, "bulkping", "server",
                       "--address", at + ":39:12"});
  ASSERT_TRUE(server.wait_for_text("serving at", 20s)) << server.error_output();
  const Finished finished = run({"env", "FAIRLEAD_PATH=udp", FAIRLEAD_COMMAND, "doctor", at}, 60s);
  EXPECT_EQ(finished.exit_code, 1) << finished.output;
  EXPECT_THAT(finished.output, AllOf(HasSubstr("TROUBLE"), HasSubstr("refused this engine"), HasSubstr("FAIRLEAD_SEAL"),
                                     Not(HasSubstr("-> start a program"))));
  std::filesystem::remove(key);
}

class DoctorsPeer : public testing::TestWithParam<const char*> {
 protected:
  Finished ask(const std::string& peer) const {
    return run({"env", std::string("FAIRLEAD_PATH=") + GetParam(), FAIRLEAD_COMMAND, "doctor", peer, "--probes", "20"},
               60s);
  }
};

TEST_P(DoctorsPeer, Answers) {
  ChildProcess server({FAIRLEAD_COMMAND, "bulkping", "server", "--address", "127.0.0.1@udp:*"});
  ASSERT_TRUE(server.wait_for_text("serving at", 20s)) << server.error_output();
  const std::string line = server.output();
  const auto from = line.find("127."), to = line.find(':', line.find("udp:") + 4);
  ASSERT_NE(to, std::string::npos) << line;
  const Finished finished = ask(line.substr(from, to - from));
  EXPECT_EQ(finished.exit_code, 0) << finished.output << finished.error_output;
  EXPECT_THAT(finished.output, HasSubstr("20 probes"));
  if (GetParam() != std::string_view("udp")) {
    EXPECT_THAT(finished.output, HasSubstr("is reached through shared memory\n"));
    EXPECT_THAT(finished.output, Not(HasSubstr("bytes arrive there"))) << "no datagrams lead there";
    return;
  }
  const std::string version = run({FAIRLEAD_COMMAND, "--version"}).output;  // "fairlead 0.2.0 (GCC ...)"
  const std::string release = version.substr(9, version.find(' ', 9) - 9);
  EXPECT_THAT(finished.output, HasSubstr("both ends have release " + release));
  EXPECT_THAT(finished.output, ContainsRegex("those of up to 6[0-9]+ bytes arrive there, of up to 6[0-9]+ bytes here"));
}

TEST_P(DoctorsPeer, IsNotThere) {
  const Finished finished = ask("127.0.0.1@udp:9");
  EXPECT_EQ(finished.exit_code, 1) << finished.output;
  EXPECT_THAT(finished.output, HasSubstr("nobody listens at 127.0.0.1:9"));
  EXPECT_THAT(finished.output, HasSubstr("-> start a program"));
}

INSTANTIATE_TEST_SUITE_P(Over, DoctorsPeer, testing::Values("auto", "udp"));

/// A peer in another network namespace, with these options.
class DoctorsLoss : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto fault = hosts_.set_up()) GTEST_SKIP() << *fault;
  }
  std::string ask(const Words& options, const char* probes) {
    Words words{FAIRLEAD_COMMAND, "bulkping", "server", "--address", "10.77.0.2"};
    words.insert(words.end(), options.begin(), options.end());
    ChildProcess server(hosts_.enter_second(words));
    EXPECT_TRUE(server.wait_for_text("serving at", 20s)) << server.error_output();
    const Finished finished =
        run(hosts_.enter_first({FAIRLEAD_COMMAND, "doctor", "10.77.0.2", "--probes", probes}), 100s);
    EXPECT_EQ(finished.exit_code, 0) << finished.output << finished.error_output;
    return finished.output;
  }

  TwoNamespaces hosts_;
};

TEST_F(DoctorsLoss, CountsProbesThatWereLost) {
  const auto fault = hosts_.lose_each_fourth_in_second();
  ASSERT_FALSE(fault) << *fault;
  const std::string output = ask({}, "40");
  EXPECT_THAT(output, HasSubstr(" of 40 probes were lost on the way there ("));
  EXPECT_THAT(output, Not(HasSubstr("0 of 40 probes were lost")));
}

// The answers take longer than the first retransmission timeout.
TEST_F(DoctorsLoss, ALateAnswerIsNoLoss) {
  EXPECT_THAT(ask({"--fault", "delay=500ms"}, "3"), HasSubstr("0 of 3 probes were lost on the way there ("));
}

/// A server in another network namespace, and what the doctor says of the way there.
class DoctorsWay : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto fault = hosts_.set_up()) GTEST_SKIP() << *fault;
  }
  Finished ask() {
    ChildProcess server(hosts_.enter_second({FAIRLEAD_COMMAND, "bulkping", "server", "--address", "10.77.0.2"}));
    EXPECT_TRUE(server.wait_for_text("serving at", 20s)) << server.error_output();
    return run(hosts_.enter_first({FAIRLEAD_COMMAND, "doctor", "10.77.0.2", "--probes", "20"}), 60s);
  }

  TwoNamespaces hosts_;
};

TEST_F(DoctorsWay, IsAsWideAsThisHostsInterface) {
  const Finished finished = ask();
  EXPECT_EQ(finished.exit_code, 0) << finished.output;
  EXPECT_THAT(finished.output, HasSubstr("ok       datagrams    those of up to 1472 bytes arrive there, of up to 14"));
  EXPECT_THAT(finished.output, HasSubstr("ok       firewall     datagrams pass both ways"));
}

TEST_F(DoctorsWay, IsNarrowerThanThisHostsInterface) {
  if (const auto fault = hosts_.enlarge_first(9000)) GTEST_SKIP() << *fault;
  const Finished finished = ask();
  EXPECT_EQ(finished.exit_code, 0) << finished.output;
  EXPECT_THAT(finished.output,
              AllOf(HasSubstr("note     datagrams    those of up to 1472 bytes arrive there, of up to 1"),
                    HasSubstr("; this host's interface takes 8972\n")));
  EXPECT_THAT(finished.output, HasSubstr("ip link set dev NAME mtu"));
}

TEST_F(DoctorsWay, IsBlockedByThisHostOnTheWayThere) {
  if (const auto fault = hosts_.drop_at_first("output")) GTEST_SKIP() << *fault;
  const Finished finished = ask();
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_THAT(finished.output, HasSubstr("a firewall of this host drops datagrams to 10.77.0.2"));
}

TEST_F(DoctorsWay, IsBlockedByThisHostOnTheWayBack) {
  if (const auto fault = hosts_.drop_at_first("input")) GTEST_SKIP() << *fault;
  const Finished finished = ask();
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_THAT(finished.output, AllOf(HasSubstr("TROUBLE  firewall     UDP arrives at 10.77.0.2"),
                                     HasSubstr("in the input rules of this host")));
}

TEST_F(DoctorsWay, IsBlockedThereOnTheWayBack) {
  if (const auto fault = hosts_.drop_at_second("output")) GTEST_SKIP() << *fault;
  const Finished finished = ask();
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_THAT(finished.output, AllOf(HasSubstr("TROUBLE  firewall     UDP arrives at 10.77.0.2"),
                                     HasSubstr("from port 20480 in the output rules there")));
}

TEST_F(DoctorsWay, IsBlockedThereOnTheWayThere) {
  if (const auto fault = hosts_.drop_at_second("input")) GTEST_SKIP() << *fault;
  const Finished finished = ask();
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_THAT(finished.output, AllOf(HasSubstr("TROUBLE  firewall     nothing comes back from 10.77.0.2"),
                                     HasSubstr("permit UDP to port 20480 in the input rules there")));
}

TEST(Doctor, SeesAHostWithoutLoopback) {
  const Finished finished = run({"unshare", ::geteuid() == 0 ? "-n" : "-Urn", FAIRLEAD_COMMAND, "doctor"}, 60s);
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_THAT(finished.output, HasSubstr("ip link set lo up"));
  EXPECT_THAT(finished.output, HasSubstr("no other host can be reached"));
}

}  // namespace
}  // namespace fairlead::tests
