#pragma once
// Two engines on virtual time, each with a port of active messages.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.hpp"
#include "path/sim_network.hpp"

namespace fairlead::engine::active_sides {

inline base::SocketAddress active_host(std::uint8_t number) {
  return *base::SocketAddress::from_ip("10.0.0." + std::to_string(number), 20480);
}

struct ActiveSide {
  std::unique_ptr<Engine> engine;
  PortHandle port;
  std::uint32_t number = 0;
  RemotePort remote() const { return {engine->address(), number}; }
  ActivePort& active() { return *engine->ports().find(port)->active; }
};

class ActiveMessages : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(options_.set(Option::active_memory_max, 1 << 20));
    ASSERT_TRUE(options_.set(Option::active_messages_max, 128));
    for (std::uint8_t i = 0; i < 2; ++i) {
      ActiveSide& side = sides_[i];
      auto path = network_.attach(active_host(i));
      ASSERT_TRUE(path) << path.error().message;
      side.engine = std::make_unique<Engine>(std::move(*path), active_host(i), options_, 100 + i, 7919 + i);
      side.number = 0x410000U + i;
      auto port = side.engine->ports().open(side.number);
      ASSERT_TRUE(port) << port.error().message;
      side.port = *port;
      ASSERT_EQ(side.engine->ports().find(side.port)->events->reserve(1000), Status::ok);
      ASSERT_EQ(side.engine->activate(side.port), Status::ok);
      side.active().rule = {AccessRule::Kind::equal, 42};
    }
  }

  void run(base::Duration span) {
    const base::Instant end = now_ + span;
    for (int steps = 0; steps < 1'000'000; ++steps) {
      bool any = false;
      for (ActiveSide& side : sides_) any |= side.engine->progress(now_);
      if (any) continue;
      base::Instant next = network_.next_event();
      for (ActiveSide& side : sides_) next = std::min(next, side.engine->next_deadline());
      if (next > end) break;
      now_ = std::max(next, now_ + base::Duration(1));
      network_.advance(now_);
    }
    now_ = std::max(now_, end);
    network_.advance(now_);
  }

  // Sends a request from a to `to`. The first `message.head` bytes are the head. The bytes live until the test ends.
  Status request(const RemotePort& to, std::vector<std::byte> bytes, ActiveMessage message = {}) {
    sent_.push_back(std::make_unique<Sent>());
    sent_.back()->bytes = std::move(bytes);
    sent_.back()->piece = {sent_.back()->bytes.data(), sent_.back()->bytes.size()};
    message.to = to;
    if (message.access == 0) message.access = 42;
    message.memory = {&sent_.back()->piece, 1};
    message.length = sent_.back()->bytes.size();
    return a().engine->send_active(a().port, message, now_, &conversation_);
  }

  static std::vector<std::byte> bytes_of(std::size_t size, unsigned salt = 1) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((i * 131 + salt) >> 3);
    return bytes;
  }
  static bool holds(const std::byte* at, std::span<const std::byte> bytes) {
    return std::equal(bytes.begin(), bytes.end(), at);
  }

  ActiveSide& a() { return sides_[0]; }
  ActiveSide& b() { return sides_[1]; }

  struct Sent {
    std::vector<std::byte> bytes;
    iovec piece;
  };
  path::SimNetwork network_{1};
  EngineOptions options_;
  base::Instant now_{std::chrono::seconds(1)};
  std::array<ActiveSide, 2> sides_;
  std::vector<std::unique_ptr<Sent>> sent_;
  Conversation conversation_;  // of the last request
};

}  // namespace fairlead::engine::active_sides
