// bulkping between two network namespaces with an MTU of 1500 and one percent of random loss: all payloads arrive and
// are verified. The namespaces belong to processes of this test and go with them.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "tests/child_process.hpp"

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

constexpr auto kRunAtMost = 100s;

/// Two namespaces, fl0 (10.77.0.1) in the first connected to fl1 (10.77.0.2) in the second.
class TwoNamespaces {
 public:
  /// Why it is not possible here, or nothing.
  std::optional<std::string> set_up() {
    // As root of a user namespace of our own if that is allowed, else as root of the host.
    for (const Words& unshare : {Words{"unshare", "-Urn"}, Words{"unshare", "-n"}}) {
      first_ = hold(unshare);
      has_own_user_ = unshare.back() == "-Urn";
      if (first_) break;
    }
    if (!first_) return "no permission to make a network namespace";
    Words inside = enter(*first_, {"unshare", "-n"});
    second_ = hold(inside);
    if (!second_) return "no permission to make a second network namespace";
    const std::string second = std::to_string(second_->pid());
    for (const Words& words :
         {Words{"ip", "link", "add", "fl0", "type", "veth", "peer", "name", "fl1", "netns", second},
          Words{"ip", "address", "add", "10.77.0.1/24", "dev", "fl0"}, Words{"ip", "link", "set", "fl0", "up"},
          Words{"ip", "link", "set", "lo", "up"}}) {
      if (auto fault = in_first(words)) return fault;
    }
    for (const Words& words : {Words{"ip", "address", "add", "10.77.0.2/24", "dev", "fl1"},
                               Words{"ip", "link", "set", "fl1", "up"}, Words{"ip", "link", "set", "lo", "up"}}) {
      if (auto fault = in_second(words)) return fault;
    }
    return {};
  }

  /// One percent of all UDP datagrams, in both namespaces.
  std::optional<std::string> lose() {
    for (const Words& words :
         {Words{"nft", "add table inet loss"},
          Words{"nft", "add chain inet loss input { type filter hook input priority 0; }"},
          Words{"nft", "add rule inet loss input meta l4proto udp numgen random mod 10000 < 100 counter drop"}}) {
      if (auto fault = in_first(words)) return fault;
      if (auto fault = in_second(words)) return fault;
    }
    return {};
  }

  /// Segments travel alone, as on a wire, and not many in one piece that is lost as one.
  std::optional<std::string> cut_segments() {
    for (const char* device : {"fl0", "fl1"}) {
      const Words words{"ethtool", "-K", device, "tx-udp-segmentation", "off", "tso", "off", "gro", "on"};
      if (auto fault = device == std::string("fl0") ? in_first(words) : in_second(words)) return fault;
    }
    return {};
  }

  Words enter_first(const Words& words) const { return enter(*first_, words); }
  Words enter_second(const Words& words) const { return enter(*second_, words); }

 private:
  /// A process that keeps a namespace of its own open.
  std::unique_ptr<ChildProcess> hold(Words words) const {
    words.insert(words.end(), {"sh", "-c", "echo here; exec sleep 600"});
    auto holder = std::make_unique<ChildProcess>(words);
    return holder->wait_for_text("here", 10s) ? std::move(holder) : nullptr;
  }

  Words enter(const ChildProcess& holder, const Words& words) const {
    Words all{"nsenter", "-t", std::to_string(holder.pid()), "-n"};
    if (has_own_user_) all.insert(all.end(), {"-U", "--preserve-credentials"});
    all.insert(all.end(), words.begin(), words.end());
    return all;
  }

  static std::optional<std::string> fault_of(const Words& words) {
    const Finished finished = run(words, 20s);
    if (finished.exit_code == 0) return {};
    return fmt::format("{}: {}", fmt::join(words, " "), finished.error_output);
  }
  std::optional<std::string> in_first(const Words& words) const { return fault_of(enter_first(words)); }
  std::optional<std::string> in_second(const Words& words) const { return fault_of(enter_second(words)); }

  bool has_own_user_ = false;
  std::unique_ptr<ChildProcess> first_, second_;
};

class Namespaces : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto fault = two_.set_up()) GTEST_SKIP() << *fault;
  }

  void run_bulkping(const Words& more) {
    ChildProcess server(two_.enter_first({FAIRLEAD_COMMAND, "bulkping", "server", "--address", "10.77.0.1", "--json"}));
    ASSERT_TRUE(server.wait_for_text("serving at", 20s)) << server.error_output();
    Words words{FAIRLEAD_COMMAND, "bulkping",       "client", "--server",          "10.77.0.1",
                "--json",         "--bulk-timeout", "90",     "--message-timeout", "30"};
    words.insert(words.end(), more.begin(), more.end());
    const Finished client = run(two_.enter_second(words), kRunAtMost);
    ASSERT_EQ(client.exit_code, 0) << client.error_output;
    server.send_signal(SIGINT);
    ASSERT_EQ(server.wait(20s), 0) << server.error_output();
    const Json at_client = Json::parse(client.output), at_server = Json::parse(server.output());
    EXPECT_GT(at_client["bytes_to_server"], 0);
    EXPECT_EQ(at_client["bytes_to_server"], at_server["served"]["bytes_to_server"]);
    EXPECT_EQ(at_client["bytes_to_client"], at_server["served"]["bytes_to_client"]);
    EXPECT_EQ(at_server["served"]["corrupt"], 0);
    resends_ = at_client["counters"].value("link.resends", 0U) + at_server["counters"].value("link.resends", 0U);
  }

  TwoNamespaces two_;
  std::uint64_t resends_ = 0;
};

TEST_F(Namespaces, WithoutLossAllPayloadsAreVerified) {
  run_bulkping({"--bulk-size", "1M", "--loops", "10", "--threads", "4"});
}

TEST_F(Namespaces, WithSegmentsLostOneByOneAllPayloadsAreVerified) {
  if (const auto fault = two_.lose()) GTEST_SKIP() << *fault;
  if (const auto fault = two_.cut_segments()) GTEST_SKIP() << *fault;
  run_bulkping({"--bulk-size", "4M", "--loops", "2", "--threads", "4"});
  EXPECT_GT(resends_, 0u);
}

TEST_F(Namespaces, WithWholeTrainsLostAllPayloadsAreVerified) {
  if (const auto fault = two_.lose()) GTEST_SKIP() << *fault;
  run_bulkping({"--bulk-size", "4M", "--loops", "4", "--threads", "4"});
  EXPECT_GT(resends_, 0u);
}

}  // namespace
}  // namespace fairlead::tests
