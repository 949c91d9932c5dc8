#pragma once
// A test fixture: two endpoints that know each other, in one engine or in two over loopback, with handlers that record
// the messages that they got.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <fairlead/am.hpp>

#include "host/daemon_for_tests.hpp"

namespace fairlead::am {

struct Seen {
  Size size = Size::brief;
  bool is_request = true;
  std::vector<Argument> arguments;
  std::vector<std::byte> data;
  const std::byte* place = nullptr;
};

struct Side {
  std::optional<Domain> domain;
  std::unique_ptr<Bundle> bundle;
  Endpoint* endpoint = nullptr;
  std::vector<Seen> seen;
  std::vector<Returned> returned;  // the spans are no longer valid
  std::vector<std::byte> memory = std::vector<std::byte>(200'000);
};

inline constexpr std::uint8_t kNote = 10, kEcho = 11, kEchoMedium = 12, kEchoLong = 13, kSilent = 14;
inline constexpr std::uint64_t kKey = 77;

inline void note(void* context, Token&, const Message& message) {
  auto& side = *static_cast<Side*>(context);
  side.seen.push_back({message.size,
                       message.is_request,
                       {message.arguments.begin(), message.arguments.end()},
                       {message.data.begin(), message.data.end()},
                       message.data.data()});
}
inline void echo(void* context, Token& token, const Message& message) {
  note(context, token, message);
  EXPECT_EQ(token.reply(kNote, message.arguments), Status::ok);
}
inline void echo_medium(void* context, Token& token, const Message& message) {
  note(context, token, message);
  EXPECT_EQ(token.reply_medium(kNote, message.data, message.arguments), Status::ok);
}
inline void echo_long(void* context, Token& token, const Message& message) {
  note(context, token, message);
  EXPECT_EQ(token.reply_long(100, kNote, message.data, message.arguments), Status::ok);
}
inline void keep_returned(void* context, Endpoint&, const Returned& returned) {
  static_cast<Side*>(context)->returned.push_back(returned);
}

inline std::vector<std::byte> pattern(std::size_t size, unsigned salt = 1) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((i * 131 + salt) >> 3);
  return bytes;
}

class Pair : public testing::Test {
 protected:
  // The address of each side; equal addresses mean one engine.
  virtual std::pair<std::string, std::string> addresses() { return {"127.0.0.1", "127.0.0.2"}; }
  /// Of the engines; "host": those of a host engine.
  virtual std::string path() { return "udp"; }
  virtual DomainSettings settings() { return {}; }
  virtual BundleMode mode() { return BundleMode::sequential; }

  void SetUp() override {
    open(a, addresses().first);
    open(b, addresses().second);
    ASSERT_EQ(a.endpoint->map(0, b.endpoint->name(), kKey), Status::ok);
    ASSERT_EQ(b.endpoint->map(0, a.endpoint->name(), kKey), Status::ok);
  }
  void TearDown() override {
    a.bundle.reset();
    b.bundle.reset();
  }
  void open(Side& side, const std::string& ip) {
    DomainSettings wanted = settings();
    wanted.ip = ip;
    if (path() == "host") {
      wanted.engine.emplace_back("core", "host");
      wanted.engine.emplace_back("host", host::DaemonForTests::shared().file());
    } else {
      wanted.engine.emplace_back("path", path());
    }
    auto domain = Domain::open(wanted);
    ASSERT_TRUE(domain) << domain.error().message;
    side.domain.emplace(std::move(*domain));
    side.bundle = std::make_unique<Bundle>(*side.domain, mode());
    auto endpoint = side.bundle->add_endpoint();
    ASSERT_TRUE(endpoint) << endpoint.error().message;
    side.endpoint = *endpoint;
    equip(side, *side.endpoint);
  }
  void equip(Side& side, Endpoint& endpoint) {
    endpoint.set_tag(Tag::of(kKey));
    endpoint.set_segment(side.memory.data(), side.memory.size());
    endpoint.set_error_handler(&keep_returned, &side);
    EXPECT_EQ(endpoint.set_handler(kNote, &note, &side), Status::ok);
    EXPECT_EQ(endpoint.set_handler(kEcho, &echo, &side), Status::ok);
    EXPECT_EQ(endpoint.set_handler(kEchoMedium, &echo_medium, &side), Status::ok);
    EXPECT_EQ(endpoint.set_handler(kEchoLong, &echo_long, &side), Status::ok);
  }
  // Polls both sides until the condition holds. The time limit only ends a failing test.
  template <typename Condition>
  bool until(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(100);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      a.bundle->poll();
      b.bundle->poll();
    }
    return true;
  }
  void run_good_requests(int count) {
    const std::size_t before = a.seen.size(), returned = a.returned.size();
    const std::array<Argument, 2> arguments{1, 2};
    for (int i = 0; i < count; ++i) {
      while (a.endpoint->outstanding() >= a.endpoint->depth()) {
        a.bundle->poll();
        b.bundle->poll();
      }
      ASSERT_EQ(a.endpoint->request(0, kEcho, arguments), Status::ok);
      b.bundle->poll();
    }
    ASSERT_TRUE(until([&] {
      return (a.seen.size() == before + count && a.endpoint->outstanding() == 0) || a.returned.size() != returned;
    }));
    ASSERT_EQ(a.returned.size(), returned) << "came back with " << static_cast<int>(a.returned.back().refusal);
  }

  Side a, b;
};

}  // namespace fairlead::am
