#pragma once
// Two transfer machines over each path. Near sends messages to far.

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "tests/net_pair.hpp"

namespace fairlead::tests {

class NetMessage : public NetPair {
 protected:
  /// Sends `length` bytes made from `seed` and waits for the send's event.
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
