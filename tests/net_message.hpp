#pragma once
// Two transfer machines, of which the near one sends messages to the far one, over each path.

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "tests/net_pair.hpp"

namespace fairlead::tests {

class NetMessage : public NetPair {
 protected:
  /// Sends `length` bytes of `seed` and waits until the buffer is back.
  void send(std::uint64_t length, std::uint64_t seed) {
    const auto one = buffer(length, near_record_);
    fill(*one, length, seed);
    ASSERT_EQ(near().add(*one, net::MessageSend{.to = to_far()}), Status::ok);
    ASSERT_EQ(near_record_.wait_for(++sent_).back().status, Status::ok);
  }
  static constexpr auto kPatience = std::chrono::seconds(20);  // ends a failing test only
  std::size_t sent_ = 0;
};

}  // namespace fairlead::tests
