// A stranger on the network (stranger.hpp) attacks an endpoint of active messages in a whole engine with its socket.
// Each attack worked once. Each test also checks that an honest request is served, so an engine that ignores everything
// fails.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include <fairlead/am.hpp>

#include "am/word.hpp"
#include "tests/stranger.hpp"

namespace fairlead::tests {
namespace {

using wire::Operation;

constexpr std::uint64_t kTagKey = 0x5EC2E7;
constexpr std::uint8_t kHandler = 10;
constexpr std::uint8_t kPlacedBit = 0x80;

/// An endpoint that counts the messages and errors that it receives.
class AttackedEndpoint : public testing::Test {
 protected:
  void SetUp() override {
    am::DomainSettings settings;
    settings.engine.emplace_back("path", "udp");
    auto domain = am::Domain::open(settings);
    ASSERT_TRUE(domain) << domain.error().message;
    bundle_.emplace(*domain, am::BundleMode::sequential);
    auto endpoint = bundle_->add_endpoint();
    ASSERT_TRUE(endpoint) << endpoint.error().message;
    endpoint_ = *endpoint;
    endpoint_->set_tag(am::Tag::of(kTagKey));
    endpoint_->set_segment(segment_.data(), segment_.size());
    endpoint_->set_error_handler(
        [](void* test, am::Endpoint&, const am::Returned&) { ++static_cast<AttackedEndpoint*>(test)->told_; }, this);
    ASSERT_EQ(
        endpoint_->set_handler(
            kHandler,
            [](void* test, am::Token&, const am::Message&) { ++static_cast<AttackedEndpoint*>(test)->handled_; }, this),
        Status::ok);
    const am::Name name = endpoint_->name();
    stranger_.emplace(base::SocketAddress{.ip = name.ip, .scope = 0, .port = name.udp_port});
    ASSERT_TRUE(stranger_->open_session());
  }

  wire::Envelope to_endpoint(Operation operation) const {
    return {.operation = operation,
            .status = kPlacedBit,
            .flags = am::Word{.kind = am::Word::Kind::large, .handler = kHandler}.pack(),
            .source_port = 77,
            .target_port = endpoint_->name().endpoint,
            .key = 1,
            .offset = 100};
  }
  /// Sends a request with the right tag, which anybody may. Called last: when it is served, all earlier messages have
  /// been.
  void expect_a_request_is_served() {
    wire::Envelope request = to_endpoint(Operation::active_request);
    request.flags = am::Word{.kind = am::Word::Kind::brief, .handler = kHandler}.pack();
    request.key = kTagKey;
    request.status = 0;
    request.offset = 0;
    stranger_->say(request);
    ASSERT_TRUE(stranger_->settle());
    const auto until = Instant::clock::now() + std::chrono::seconds(30);
    while (handled_ == 0 && bundle_->wait(until) == Status::ok) {
    }
    EXPECT_EQ(handled_, 1);
  }
  bool is_segment_untouched() const {
    return std::ranges::all_of(segment_, [](std::byte byte) { return byte == std::byte{0}; });
  }

  std::vector<std::byte> segment_ = std::vector<std::byte>(1 << 16);
  std::optional<am::Bundle> bundle_;
  am::Endpoint* endpoint_ = nullptr;
  std::optional<Stranger> stranger_;
  int told_ = 0, handled_ = 0;
};

// One datagram holds a thousand guesses. The engine counts them, writes nothing and puts the stranger out.
TEST_F(AttackedEndpoint, IsNotGuessedAt) {
  const std::vector<std::byte> evil(8, std::byte{0xEE});
  wire::Envelope guess = to_endpoint(Operation::active_reply);
  for (std::uint64_t key = 1; key < 100'000 && !stranger_->is_closed(); ++key) {
    guess.key = key;
    stranger_->say(guess, evil);
  }
  EXPECT_FALSE(stranger_->settle());
  EXPECT_TRUE(stranger_->is_closed()) << "it is put out";
  ASSERT_TRUE(stranger_->open_session());
  expect_a_request_is_served();
  EXPECT_TRUE(is_segment_untouched());
}

// Sends all four operations with wrong secrets, placed and not placed. The engine writes nothing and runs no handler.
TEST_F(AttackedEndpoint, IsNotWrittenToByAStranger) {
  const std::vector<std::byte> evil(200, std::byte{0xEE});
  for (const Operation operation :
       {Operation::active_request, Operation::active_reply, Operation::active_returned, Operation::active_rejected}) {
    for (const int shape : {0, 0x80, 0x81}) {
      for (const std::uint64_t key : {0ULL, 1ULL, ~0ULL}) {
        wire::Envelope message = to_endpoint(operation);
        message.key = key;
        message.status = static_cast<std::uint8_t>(shape);
        stranger_->say(message, evil);
        stranger_->say_chunk(message, {.message = 1, .slot = 1, .size = 400, .offset = 200}, evil);
        stranger_->say_chunk(message, {.message = 1, .slot = 1, .size = 400, .offset = 0}, evil);
      }
    }
  }
  ASSERT_TRUE(stranger_->settle());
  expect_a_request_is_served();
  EXPECT_TRUE(is_segment_untouched());
  EXPECT_EQ(told_, 0);
}

}  // namespace
}  // namespace fairlead::tests
