#pragma once
// Engines that encrypt, each with a socket of its own, and a temporary folder with their keys.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/owned_file.hpp"
#include "embedded/attach.hpp"
#include "engine/core.hpp"
#include "seal/keygen.hpp"
#include "tests/path_attacker.hpp"

namespace fairlead::tests::sealed {

using Bytes = PathAttacker::Bytes;

constexpr auto kTalkAtMost = std::chrono::seconds(60);
constexpr std::uint32_t kSealedPort = 1;

/// Pairs of an option's name and value.
using Settings = std::vector<std::pair<std::string, std::string>>;

inline bool comes_true(const std::function<bool()>& what) {
  for (const auto end = base::MonotonicClock::now() + kTalkAtMost; base::MonotonicClock::now() < end;)
    if (what()) return true;
  return false;
}

inline std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The payload of message `number`.
inline Bytes payload(std::uint64_t number, std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(number * 131 + i * 7 + (i >> 8));
  return bytes;
}

/// An engine with one port. Its messages are `payload` with increasing numbers.
class SealedNode {
 public:
  /// Node `number` uses address 127.0.0.`number`.
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

  /// Posts `count` receives.
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
  /// Makes progress and takes all events.
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
  /// Checks that each payload arrived once, in any order, and that each send succeeded.
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
  // Cookies from here on are of receives; the rest is their index in memory_.
  static constexpr std::uint64_t kReceives = 1ULL << 32;

  engine::PortHandle port_;
  std::deque<Bytes> memory_;
  std::deque<iovec> pieces_;
  std::uint64_t sent_ = 0;
  std::vector<std::size_t> sizes_of_sent_;
};

/// A temporary folder with key files.
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
  /// Replaces a file atomically.
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::remove(*this / (name + ".new"));
    ASSERT_TRUE(base::create_secret_file(*this / (name + ".new"), text));
    std::filesystem::rename(*this / (name + ".new"), *this / name);
  }

 private:
  std::string path_;
};

inline std::string psk_line(char digit) {
  return "psk " + std::string(64, digit) + "\n";
}

class SealedWire : public testing::Test {
 protected:
  Settings psk(const std::string& file) const { return {{"seal", "psk:" + (keys_ / file)}}; }
  /// Settings with a key and a file of known peers that belong to `name`.
  Settings x25519(const std::string& name) const {
    return {{"seal", "x25519:" + (keys_ / name)}, {"seal_peers", keys_ / (name + "_knows")}};
  }
  /// Makes a key file and returns its line for the known peers of others.
  std::string make_key(const std::string& name) const {
    return seal::make_key_file(keys_ / name, seal::KeyKind::x25519, "127.0.0.0/8").value();
  }
  /// Settings of two engines that know each other's static keys.
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

  /// Exchanges one message in each direction.
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
  /// `one` greets `two` and is refused. Holds what `one` reports and what `two` logs.
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

}  // namespace fairlead::tests::sealed
