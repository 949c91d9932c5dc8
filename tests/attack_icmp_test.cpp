// Forged ICMP "too big" messages for the traffic between two engines, in a network namespace of the test. Neither these
// engines nor later ones shorten their datagrams, and nothing is lost.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/network_namespace.hpp"
#include "path/forged_icmp_for_tests.hpp"
#include "tests/attacked_pair.hpp"

namespace fairlead::tests {
namespace {

/// Must be the first object of a test, so that the engines are created in this namespace.
class OwnNetwork {
 public:
  OwnNetwork() : network_(base::make_network()) {
    if (!network_) return;
    visit_.emplace(base::NetworkVisit::enter(network_->get()));
    EXPECT_TRUE(*visit_ && path::bring_up_loopback());
  }
  std::string why_not() const { return network_ ? "" : network_.error().message; }

 private:
  Result<base::FileDescriptor> network_;
  std::optional<Result<base::NetworkVisit>> visit_;
};

TEST(AttackedByIcmp, DatagramsKeepTheirLength) {
  const OwnNetwork network;
  if (!network.why_not().empty()) GTEST_SKIP() << network.why_not();

  const Node victim("127.0.0.1"), decent("127.0.0.2");
  const auto send = [&](const Node& from) {
    std::vector<std::byte> bytes(400'000, std::byte{1}), inbox(400'000);
    const iovec memory{bytes.data(), bytes.size()}, room{inbox.data(), inbox.size()};
    engine::OperationHandle name;
    ASSERT_EQ(victim.core->post_receive(victim.port, {.memory = {&room, 1}, .size_min = 400'000}, name), Status::ok);
    ASSERT_EQ(
        from.core->send(from.port, {.to = victim.name(), .part = {.memory = {&memory, 1}, .length = 400'000}}, name),
        Status::ok);
    for (const Node* node : {&from, &victim}) {
      const auto end = node->next();
      ASSERT_TRUE(end.has_value());
      EXPECT_EQ(end->status, Status::ok);
    }
    EXPECT_EQ(bytes, inbox);
  };
  send(decent);
  for (int round = 0; round < 20; ++round) {
    ASSERT_TRUE(path::forge_too_big(decent.core->address(), victim.core->address()));
    ASSERT_TRUE(path::forge_too_big(victim.core->address(), decent.core->address()));
    send(decent);
  }
  const Node newcomer("127.0.0.3");
  send(newcomer);
  EXPECT_GT(decent.counter("link.size_hints"), 0U);
  for (const Node* node : {&victim, &decent, &newcomer}) {
    EXPECT_EQ(node->counter("link.sizes_lowered"), 0U);
    EXPECT_EQ(node->counter("link.sessions_lost"), 0U);
  }
  EXPECT_TRUE(decent.core->describe_peer(victim.core->address()).contains("datagrams of up to 65507 bytes"))
      << decent.core->describe_peer(victim.core->address());
  EXPECT_TRUE(newcomer.core->describe_peer(victim.core->address()).contains("datagrams of up to 65507 bytes"));
}

}  // namespace
}  // namespace fairlead::tests
