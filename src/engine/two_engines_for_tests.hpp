#pragma once
// Two engines on virtual time over the simulated network.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "path/sim_network.hpp"

namespace fairlead::engine {

using namespace std::chrono_literals;

/// An engine with one open port. events() takes the port's events.
struct Side {
  std::unique_ptr<Engine> engine;
  PortHandle port;
  std::uint32_t number = 0;

  RemotePort remote() const { return {engine->address(), number}; }

  std::vector<Completion> events() {
    std::vector<Completion> all;
    while (const Completion* event = engine->ports().find(port)->events->consume()) all.push_back(*event);
    return all;
  }
};

class TwoEngines : public ::testing::Test {
 protected:
  static base::SocketAddress host(std::uint8_t number) {
    return *base::SocketAddress::from_ip("10.0.0." + std::to_string(number), 20480);
  }
  static std::vector<std::byte> pattern(std::size_t size, unsigned salt) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((i * 131 + salt) >> 3);
    return bytes;
  }
  static iovec piece(std::vector<std::byte>& bytes) { return {bytes.data(), bytes.size()}; }

  explicit TwoEngines(std::uint64_t seed = 1) : network_(seed) {
    for (std::uint8_t i = 0; i < 2; ++i) start(i, 100 + i);
  }

  void start(std::uint8_t index, std::uint64_t epoch) {
    Side& side = sides_[index];
    side.engine.reset();
    auto path = network_.attach(host(index));
    ASSERT_TRUE(path) << path.error().message;
    side.engine = std::make_unique<Engine>(std::move(*path), host(index), options_, epoch, epoch * 7919);
    side.number = 34U << 12 | (index + 1U);
    auto port = side.engine->ports().open(side.number);
    ASSERT_TRUE(port) << port.error().message;
    side.port = *port;
    ASSERT_EQ(side.engine->ports().find(side.port)->events->reserve(1000), Status::ok);
  }

  /// Runs engines and network until virtual time has advanced by `span`.
  void run(base::Duration span) {
    const base::Instant end = now_ + span;
    for (int steps = 0; steps < 1'000'000; ++steps) {
      bool any = false;
      for (Side& side : sides_) {
        if (side.engine) any |= side.engine->progress(now_);
      }
      if (any) continue;
      base::Instant next = network_.next_event();
      for (Side& side : sides_) {
        if (side.engine) next = std::min(next, side.engine->next_deadline());
      }
      if (next > end) break;
      now_ = std::max(next, now_ + 1ns);
      network_.advance(now_);
    }
    now_ = std::max(now_, end);
    network_.advance(now_);
  }

  Side& a() { return sides_[0]; }
  Side& b() { return sides_[1]; }

  path::SimNetwork network_;
  EngineOptions options_;
  base::Instant now_{1s};
  std::array<Side, 2> sides_;
};

}  // namespace fairlead::engine
