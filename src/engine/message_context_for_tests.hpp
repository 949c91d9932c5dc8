#pragma once
// The context of the message client's parts for tests: an engine that reaches only itself, with one open port.

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string_view>

#include "engine/message_context.hpp"

namespace fairlead::engine {

class MessageContextTest : public testing::Test {
 protected:
  static constexpr std::uint32_t kNumber = 7;

  MessageContextTest() { EXPECT_EQ(ports_.find(port_)->events->reserve(100), Status::ok); }
  std::optional<Completion> event() {
    const Completion* const next = ports_.find(port_)->events->consume();
    return next == nullptr ? std::nullopt : std::optional(*next);
  }
  std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

  const base::SocketAddress own_ = *base::SocketAddress::from_ip("127.0.0.1", 1);
  const base::Instant now_{std::chrono::seconds(1)};
  EngineOptions options_;
  Ports ports_{own_};
  MessageContext context_{ports_, nullptr, own_, 99, options_};
  PortHandle port_ = *ports_.open(kNumber);
};

}  // namespace fairlead::engine
