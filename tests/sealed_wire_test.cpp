// Engines that encrypt (docs/seal.md), each with a socket of its own: which engines connect, what each side reports of
// a refusal, and how a key is replaced while messages flow.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "tests/child_process.hpp"
#include "tests/sealed_wire.hpp"

namespace fairlead::tests::sealed {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST_F(SealedWire, BySharedSecret) {
  keys_.write("psk", psk_line('a'));
  SealedNode one(1, psk("psk")), two(2, psk("psk"));
  expect_they_talk(one, two);
}

TEST_F(SealedWire, ByPinnedKeys) {
  const auto [first, second] = acquainted();
  SealedNode one(1, first), two(2, second);
  expect_they_talk(one, two);
}

TEST_F(SealedWire, BothSidesSayWhyAnotherSecretIsRefused) {
  keys_.write("psk", psk_line('a'));
  keys_.write("other", psk_line('b'));
  const Words words = refuse(psk("psk"), psk("other"), "wrong_secret");
  EXPECT_THAT(words.of_refused, HasSubstr("refused this engine"));
  EXPECT_THAT(words.of_refused, HasSubstr("another pre-shared key: give both ends the same file"));
  EXPECT_THAT(words.of_refuser, HasSubstr("was refused: it has another pre-shared key"));
}

TEST_F(SealedWire, BothSidesSayWhyAnUnknownKeyIsRefused) {
  const auto [first, second] = acquainted();
  keys_.write("two_knows", "# nobody\n");
  const Words words = refuse(first, second, "unknown_key");
  EXPECT_THAT(words.of_refused, HasSubstr("does not know our public key for our address: add our line"));
  EXPECT_THAT(words.of_refuser, HasSubstr("its public key is not among our known peers for its address: add its line"));
}

TEST_F(SealedWire, BothSidesSayWhyAGreetingForAnotherKeyIsRefused) {
  const auto [first, second] = acquainted();
  keys_.write("one_knows", make_key("third"));
  const Words words = refuse(first, second, "wrong_key");
  EXPECT_THAT(words.of_refused, HasSubstr("its public key is not the one that our known peers have for it"));
  EXPECT_THAT(words.of_refuser, HasSubstr("its hello was for another public key than ours"));
}

TEST_F(SealedWire, BothSidesSayWhyNothingUnsealedIsTaken) {
  keys_.write("psk", psk_line('a'));
  const Words words = refuse({}, psk("psk"), "not_sealed");
  EXPECT_THAT(words.of_refused, HasSubstr("accepts only sealed traffic: set FAIRLEAD_SEAL here"));
  EXPECT_THAT(words.of_refuser, HasSubstr("it does not seal, but must (FAIRLEAD_SEAL_REQUIRE)"));
}

TEST_F(SealedWire, BothSidesSayWhyWhoCannotSealRefuses) {
  keys_.write("psk", psk_line('a'));
  const Words words = refuse(psk("psk"), {}, "cannot_seal");
  EXPECT_THAT(words.of_refused, HasSubstr("it cannot seal: set FAIRLEAD_SEAL there"));
  EXPECT_THAT(words.of_refuser, HasSubstr("this engine has no key: set FAIRLEAD_SEAL here"));
}

TEST_F(SealedWire, WhoHasNoKeyOfAPeerSaysSo) {
  const auto [first, second] = acquainted();
  keys_.write("one_knows", "# nobody\n");
  SealedNode one(1, first), two(2, second);
  one.send(two.address(), 100);
  EXPECT_TRUE(comes_true([&] {
    one.step();
    return !one.statuses.empty();
  }));
  EXPECT_EQ(one.statuses, std::vector{Status::refused});
  EXPECT_THAT(one.core->describe_peer(two.address()), HasSubstr("our known peers have no public key for it"));
  EXPECT_EQ(one.counter("link.hellos_sent"), 0U);
}

TEST_F(SealedWire, AnEngineWithoutItsKeyDoesNotStart) {
  engine::EngineOptions options;
  ASSERT_TRUE(options.set("seal_require", "10.0.0.0/8"));
  const auto local = *base::SocketAddress::from_ip("127.0.0.1", 0);
  EXPECT_THAT(embedded::attach_embedded(local, options).error().message, HasSubstr("seal_require without a key"));
  ASSERT_TRUE(options.set("seal", "psk:" + (keys_ / "missing")));
  EXPECT_THAT(embedded::attach_embedded(local, options).error().message, HasSubstr("cannot open it"));
}

// Each step waits until both engines have read the new file, and then until two key changes have used it.
TEST_F(SealedWire, ASecretIsReplacedWhileMessagesGoOn) {
  keys_.write("psk", psk_line('a'));
  const Settings settings = with(psk("psk"), {{"seal_rekey_bytes", "65536"}});
  SealedNode one(1, settings), two(2, settings);
  std::size_t sent = 0;
  const auto talk = [&] {
    one.expect(1, 20'000);
    two.expect(1, 20'000);
    one.send(two.address(), 20'000);
    two.send(one.address(), 500);
    ++sent;
    return comes_true([&] {
      one.step();
      two.step();
      return one.received.size() == sent && two.received.size() == sent && one.statuses.size() == sent;
    });
  };
  std::uint64_t files = 0;
  for (const std::string& text : {psk_line('a') + psk_line('b'), psk_line('b') + psk_line('a'), psk_line('b')}) {
    keys_.write("psk", text);
    ++files;
    const auto have_read = [&](const SealedNode& node) { return node.counter("engine.keyrings_read") == files; };
    while (sent < 1000 && !(have_read(one) && have_read(two))) {
      ASSERT_TRUE(talk());
      std::this_thread::sleep_for(10ms);
    }
    const std::uint64_t before = one.counter("link.keys_changed");
    while (sent < 1000 && one.counter("link.keys_changed") < before + 2) ASSERT_TRUE(talk());
    ASSERT_LT(sent, 1000U);
  }
  one.expect_received_all_of(two);
  two.expect_received_all_of(one);
  EXPECT_EQ(one.counter("link.sessions_opened"), 1U);
  EXPECT_EQ(one.counter("link.sessions_lost"), 0U);
  EXPECT_EQ(two.counter("link.sessions_lost"), 0U);
  EXPECT_EQ(one.refused("bad_tag") + one.refused("unknown_epoch"), 0U);
}

// Processes -------------------------------------------------------------------------------------------------------

/// Works as a user does: the command makes the keys, and the environment names them.
class SealedProcesses : public SealedWire {
 protected:
  std::vector<std::string> bulkping(const std::string& name, const std::string& kind,
                                    const std::vector<std::string>& words) const {
    std::vector<std::string> all{"env",
                                 "FAIRLEAD_PATH=udp",
                                 "FAIRLEAD_SEAL=" + kind + ":" + (keys_ / name),
                                 "FAIRLEAD_SEAL_PEERS=" + (keys_ / (name + "_knows")),
                                 FAIRLEAD_COMMAND,
                                 "bulkping"};
    all.insert(all.end(), words.begin(), words.end());
    return all;
  }
  std::string keygen(const std::vector<std::string>& words) const {
    std::vector<std::string> all{FAIRLEAD_COMMAND, "keygen"};
    all.insert(all.end(), words.begin(), words.end());
    const Finished made = run(all);
    EXPECT_EQ(made.exit_code, 0) << made.error_output;
    return made.output;
  }
  Finished ping(const std::string& kind) {
    ChildProcess server(bulkping("server", kind, {"server", "--address", address_}));
    EXPECT_TRUE(server.wait_for_text("serving at", 20s)) << server.error_output();
    return run(bulkping("client", kind, {"client", "--server", address_, "--bulk-size", "64K", "--loops", "5"}), 60s);
  }

  const std::string address_ = fmt::format("127.0.0.1@udp:{}:39:12", free_port());
};

TEST_F(SealedProcesses, BySharedSecret) {
  keygen({"--psk", keys_ / "server"});
  std::filesystem::copy(keys_ / "server", keys_ / "client");
  const Finished client = ping("psk");
  EXPECT_EQ(client.exit_code, 0) << client.error_output;
}

TEST_F(SealedProcesses, ByPinnedKeys) {
  keys_.write("client_knows", keygen({keys_ / "server", "--address", "127.0.0.1"}));
  keys_.write("server_knows", keygen({keys_ / "client", "--address", "127.0.0.1"}));
  const Finished client = ping("x25519");
  EXPECT_EQ(client.exit_code, 0) << client.error_output;
}

TEST_F(SealedProcesses, AreToldWhoRefusedAndWhatToDo) {
  keygen({"--psk", keys_ / "server"});
  keygen({"--psk", keys_ / "client"});
  const Finished client = ping("psk");
  EXPECT_NE(client.exit_code, 0);
  EXPECT_THAT(client.error_output, HasSubstr("give both ends the same file"));
}

}  // namespace
}  // namespace fairlead::tests::sealed
