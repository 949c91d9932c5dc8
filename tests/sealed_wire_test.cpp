// Engines that seal what they say (docs/seal.md), each with a socket of its own: who meets whom, what is said to those
// who do not, how a key is replaced while messages go on, and what somebody on the path can do.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <random>
#include <sstream>
#include <thread>

#include "base/owned_file.hpp"
#include "embedded/attach.hpp"
#include "engine/core.hpp"
#include "seal/keygen.hpp"
#include "tests/child_process.hpp"
#include "tests/path_attacker.hpp"
#include "wire/segment.hpp"

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Bytes = PathAttacker::Bytes;

constexpr auto kTalkAtMost = 60s;
constexpr std::uint32_t kSealedPort = 1;

/// Names of options and what they are set to.
using Settings = std::vector<std::pair<std::string, std::string>>;

bool comes_true(const std::function<bool()>& what) {
  for (const auto end = base::MonotonicClock::now() + kTalkAtMost; base::MonotonicClock::now() < end;)
    if (what()) return true;
  return false;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Of message `number`.
Bytes payload(std::uint64_t number, std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(number * 131 + i * 7 + (i >> 8));
  return bytes;
}

/// An engine with one port. What it sends and receives is `payload` of increasing numbers.
class SealedNode {
 public:
  /// Each has its own address of the loopback.
  SealedNode(int number, const Settings& settings) {
    engine::EngineOptions options;
    EXPECT_TRUE(options.set("path", "udp"));
    for (const auto& [name, value] : settings) EXPECT_TRUE(options.set(name, value)) << name;
    const std::string ip = fmt::format("127.0.0.{}", number);
    core = embedded::attach_embedded(*base::SocketAddress::from_ip(ip, 0), options).value();
    port_ = core->open_port(kSealedPort).value();
    EXPECT_EQ(core->reserve_events(port_, 2 * kMost), Status::ok);
  }
  ~SealedNode() { core->close_port(port_); }

  /// Room for so many messages.
  void expect(std::size_t count, std::size_t size) {
    ASSERT_LE(memory_.size() + count, kMost);
    for (std::size_t i = 0; i < count; ++i) {
      memory_.emplace_back(size);
      pieces_.push_back({memory_.back().data(), size});
      engine::OperationHandle name;
      ASSERT_EQ(
          core->post_receive(
              port_, {.memory = {&pieces_.back(), 1}, .size_min = 1, .cookie = kReceives + memory_.size() - 1}, name),
          Status::ok);
    }
  }
  void send(const base::SocketAddress& to, std::size_t size) {
    memory_.push_back(payload(sent_, size));
    sizes_of_sent_.push_back(size);
    pieces_.push_back({memory_.back().data(), size});
    engine::OperationHandle name;
    const engine::Send message{.to = {to, kSealedPort}, .part = {{&pieces_.back(), 1}, size, sent_++}};
    ASSERT_EQ(core->send(port_, message, name), Status::ok);
  }
  /// Takes what has ended.
  void step() {
    engine::Completion ended;
    core->progress();
    while (core->next_event(port_, ended)) {
      if (ended.cookie < kReceives) {
        statuses.push_back(ended.status);
      } else if (ended.status == Status::ok) {
        Bytes& bytes = memory_[ended.cookie - kReceives];
        bytes.resize(ended.length);
        received.push_back(bytes);
      }
    }
  }

  std::uint64_t counter(std::string_view name) const {
    const auto facts = core->facts();
    const auto found = std::ranges::find_if(facts.counters, [&](const auto& counter) { return counter.name == name; });
    EXPECT_NE(found, facts.counters.end()) << name;
    return found == facts.counters.end() ? 0 : found->value;
  }
  std::uint64_t refused(std::string_view why) const { return counter(fmt::format("link.refused.{}", why)); }
  base::SocketAddress address() const { return core->address(); }
  /// Each payload that was sent came once, in any order.
  void expect_received_all_of(const SealedNode& sender) const {
    std::vector<Bytes> sent = sender.sent_messages(), came = received;
    std::ranges::sort(sent);
    std::ranges::sort(came);
    EXPECT_TRUE(sent == came) << sent.size() << " sent, " << came.size() << " received";
    for (const Status status : sender.statuses) EXPECT_EQ(status, Status::ok);
  }
  std::vector<Bytes> sent_messages() const {
    std::vector<Bytes> all;
    for (std::uint64_t i = 0; i < sent_; ++i) all.push_back(payload(i, sizes_of_sent_[i]));
    return all;
  }

  std::shared_ptr<engine::Core> core;
  std::vector<Status> statuses;  // of messages sent
  std::vector<Bytes> received;

 private:
  static constexpr std::size_t kMost = 4096;
  static constexpr std::uint64_t kReceives = 1ULL << 32;  // from here on: cookies of receives, with their memory

  engine::PortHandle port_;
  std::deque<Bytes> memory_;
  std::deque<iovec> pieces_;
  std::uint64_t sent_ = 0;
  std::vector<std::size_t> sizes_of_sent_;
};

/// Key files in a folder of the test's own.
class KeyFolder {
 public:
  KeyFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "sealed_wire_XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~KeyFolder() { std::filesystem::remove_all(path_); }
  KeyFolder(const KeyFolder&) = delete;
  KeyFolder& operator=(const KeyFolder&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  /// A file with these lines, in place of what was there.
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::remove(*this / (name + ".new"));
    ASSERT_TRUE(base::create_secret_file(*this / (name + ".new"), text));
    std::filesystem::rename(*this / (name + ".new"), *this / name);
  }

 private:
  std::string path_;
};

std::string psk_line(char digit) {
  return "psk " + std::string(64, digit) + "\n";
}

class SealedWire : public testing::Test {
 protected:
  Settings psk(const std::string& file) const { return {{"seal", "psk:" + (keys_ / file)}}; }
  /// With keys of its own, and known peers in a file of its own.
  Settings x25519(const std::string& name) const {
    return {{"seal", "x25519:" + (keys_ / name)}, {"seal_peers", keys_ / (name + "_knows")}};
  }
  /// Makes the key; its line for others.
  std::string make_key(const std::string& name) const {
    return seal::make_key_file(keys_ / name, seal::KeyKind::x25519, "127.0.0.0/8").value();
  }
  /// Two that know each other by static keys.
  std::array<Settings, 2> acquainted() const {
    const std::string one = make_key("one"), two = make_key("two");
    keys_.write("one_knows", two);
    keys_.write("two_knows", one);
    return {x25519("one"), x25519("two")};
  }
  static Settings with(Settings settings, const Settings& more) {
    settings.insert(settings.end(), more.begin(), more.end());
    return settings;
  }

  /// One message each way between two nodes.
  static void expect_they_talk(SealedNode& one, SealedNode& two) {
    one.expect(1, 100'000);
    two.expect(1, 100'000);
    one.send(two.address(), 100'000);
    two.send(one.address(), 1);
    EXPECT_TRUE(comes_true([&] {
      one.step();
      two.step();
      return one.received.size() == 1 && two.received.size() == 1 && one.statuses.size() == 1 &&
             two.statuses.size() == 1;
    }));
    one.expect_received_all_of(two);
    two.expect_received_all_of(one);
    EXPECT_EQ(one.counter("link.sessions_sealed"), 1U);
    EXPECT_EQ(two.counter("link.sessions_sealed"), 1U);
  }
  /// `one` greets `two` in vain. What it tells, and what `two` writes into its log.
  struct Words {
    std::string of_refused, of_refuser;
  };
  Words refuse(Settings settings_of_one, Settings settings_of_two, std::string_view counted) const {
    settings_of_two.emplace_back("flight", keys_ / "log");
    settings_of_one.emplace_back("unreachable_after", "300");
    SealedNode one(1, settings_of_one), two(2, settings_of_two);
    one.send(two.address(), 100);
    EXPECT_TRUE(comes_true([&] {
      one.step();
      two.step();
      return !one.statuses.empty() && !text_of(keys_ / "log").empty();
    }));
    EXPECT_EQ(one.statuses, std::vector{Status::refused});
    EXPECT_GT(two.refused(counted), 0U);
    EXPECT_EQ(two.counter("link.sessions_opened"), 0U);
    return {one.core->describe_peer(two.address()), text_of(keys_ / "log")};
  }

  KeyFolder keys_;
};

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

// Each step waits until both have read the file, then until both use keys that were made with it.
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

// On the path -----------------------------------------------------------------------------------------------------

/// Messages through an attacker, which acts on every datagram that passes.
class AttackedWire : public SealedWire, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    std::array<Settings, 2> settings;
    if (GetParam()) {
      settings = acquainted();
    } else {
      keys_.write("psk", psk_line('a'));
      settings = {psk("psk"), psk("psk")};
    }
    for (std::size_t i = 0; i < 2; ++i)
      nodes_[i].emplace(static_cast<int>(i + 1), with(settings[i], {{"seal_rekey_bytes", "262144"}}));
    path_.emplace(std::array{nodes_[0]->address(), nodes_[1]->address()});
  }

  /// Sends `count` messages each way, and calls act(to, bytes) for every datagram, until all have come.
  template <typename Act>
  void talk(std::size_t count, Act&& act) {
    for (std::size_t i = 0; i < 2; ++i) nodes_[i]->expect(count, kSizeMost);
    for (std::size_t i = 0; i < count; ++i) {
      nodes_[0]->send(path_->seen_by(0), 1 + i * 977 % kSizeMost);
      nodes_[1]->send(path_->seen_by(1), 1 + i * 31 % 700);
    }
    sent_ += count;
    EXPECT_TRUE(comes_true([&] {
      path_->step(act);
      for (auto& node : nodes_) node->step();
      return std::ranges::all_of(nodes_, [&](const std::optional<SealedNode>& node) {
        return node->received.size() == sent_ && node->statuses.size() == sent_;
      });
    }));
    nodes_[0]->expect_received_all_of(*nodes_[1]);
    nodes_[1]->expect_received_all_of(*nodes_[0]);
  }
  void pass(std::size_t to, const Bytes& bytes) { path_->send(to, bytes); }
  void expect_one_session() const {
    for (const auto& node : nodes_) {
      EXPECT_EQ(node->counter("link.sessions_opened"), 1U);
      EXPECT_EQ(node->counter("link.sessions_sealed"), 1U);
      EXPECT_EQ(node->counter("link.sessions_lost"), 0U);
    }
  }
  std::uint64_t refused(std::string_view why) const { return nodes_[0]->refused(why) + nodes_[1]->refused(why); }

  static constexpr std::size_t kSizeMost = 60'000;
  std::array<std::optional<SealedNode>, 2> nodes_;
  std::optional<PathAttacker> path_;
  std::size_t sent_ = 0;
  std::mt19937_64 random_{1};
};

TEST_P(AttackedWire, ShowsNothingOfWhatIsSaid) {
  std::size_t datagrams = 0;
  talk(20, [&](std::size_t to, const Bytes& bytes) {
    ++datagrams;
    for (const std::uint64_t number : {1U, 7U, 19U}) {
      const Bytes text = payload(number, 16);
      EXPECT_EQ(::memmem(bytes.data(), bytes.size(), text.data(), text.size()), nullptr);
    }
    pass(to, bytes);
  });
  EXPECT_GT(datagrams, 20U);
  expect_one_session();
}

TEST_P(AttackedWire, TakesNothingThatWasChanged) {
  talk(60, [&](std::size_t to, const Bytes& bytes) {
    for (int i = 0; i < 3; ++i) {
      Bytes changed = bytes;
      changed[random_() % changed.size()] ^= static_cast<std::byte>(1U << (random_() % 8));
      path_->send(to, changed);
    }
    pass(to, bytes);
  });
  EXPECT_GT(refused("bad_tag"), 20U);
  expect_one_session();
}

TEST_P(AttackedWire, TakesNothingThatWasCutOrGrown) {
  talk(60, [&](std::size_t to, const Bytes& bytes) {
    Bytes longer = bytes;
    longer.resize(bytes.size() + 1 + random_() % 64);
    path_->send(to, longer);
    path_->send(to, std::span(bytes).first(random_() % bytes.size()));
    pass(to, bytes);
  });
  EXPECT_GT(refused("bad_tag"), 20U);
  expect_one_session();
}

TEST_P(AttackedWire, TakesNothingTwice) {
  std::array<std::vector<Bytes>, 2> seen;
  talk(60, [&](std::size_t to, const Bytes& bytes) {
    pass(to, bytes);
    seen[to].push_back(bytes);
    path_->send(to, bytes);
    path_->send(to, seen[to][random_() % seen[to].size()]);
  });
  EXPECT_GT(refused("replayed"), 20U);
  expect_one_session();
}

TEST_P(AttackedWire, TakesNothingOfItsOwn) {
  talk(60, [&](std::size_t to, const Bytes& bytes) {
    path_->send(1 - to, bytes);
    pass(to, bytes);
  });
  EXPECT_GT(refused("unknown_token") + refused("bad_tag") + refused("late_hello_ack"), 20U);
  expect_one_session();
}

// Headers of datagrams that passed, as any kind in the clear, with a right checksum.
TEST_P(AttackedWire, TakesNothingInTheClear) {
  talk(60, [&](std::size_t to, const Bytes& bytes) {
    pass(to, bytes);
    for (std::uint8_t kind = 1; kind <= 13; ++kind) {
      Bytes forged = bytes;
      forged[1] = std::byte{kind};
      forged[2] &= std::byte{31};
      wire::add_checksum(forged, {});
      path_->send(to, forged);
      forged.resize(wire::kSegmentHeaderBytes);
      wire::add_checksum(forged, {});
      path_->send(to, forged);
    }
  });
  EXPECT_GT(refused("not_sealed"), 20U);
  expect_one_session();
}

// All of it from the first datagram on, and what passes is lost, late or out of order as well.
TEST_P(AttackedWire, IsDelayedAndDroppedAndNothingElse) {
  struct Kept {
    std::size_t to = 0;
    Bytes bytes;
  };
  std::vector<Kept> kept;
  const auto meddle = [&](std::size_t to, const Bytes& bytes) {
    if (kept.size() < 2000) kept.push_back({to, bytes});
    Kept again = kept[random_() % kept.size()];
    const std::uint64_t way = random_() % 5;
    if (way == 0) again.to = 1 - again.to;
    if (way == 1) again.bytes[random_() % again.bytes.size()] ^= std::byte{4};
    if (way == 2) again.bytes.resize(random_() % again.bytes.size());
    if (way == 3 && again.bytes.size() >= wire::kSegmentHeaderBytes) {
      again.bytes[1] = static_cast<std::byte>(1 + random_() % 13);
      again.bytes[2] &= std::byte{31};
      wire::add_checksum(again.bytes, {});
    }
    path_->send(again.to, again.bytes);
    if (random_() % 25 != 0) pass(to, bytes);
  };
  talk(150, meddle);
  // What is lost on the way may also be a step of a change.
  for (int i = 0; i < 20 && nodes_[0]->counter("link.keys_changed") < 2; ++i) talk(50, meddle);
  EXPECT_GT(refused("bad_tag"), 0U);
  EXPECT_GT(refused("replayed"), 0U);
  EXPECT_GE(nodes_[0]->counter("link.keys_changed"), 2U);
  expect_one_session();
}

INSTANTIATE_TEST_SUITE_P(BothKinds, AttackedWire, testing::Bool(),
                         [](const auto& kind) { return kind.param ? "PinnedKeys" : "SharedSecret"; });

// Processes -------------------------------------------------------------------------------------------------------

/// As a user does it: keys made by the command, named in the environment.
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
}  // namespace fairlead::tests
