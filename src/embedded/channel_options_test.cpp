// Each of the two channels has its own depth and segment size, which can be set within their ranges.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "engine/engine.hpp"
#include "path/sim_network.hpp"
#include "wire/segment.hpp"

namespace fairlead::embedded {
namespace {

/// Returns how many messages of a size an engine accepts for a peer that does not answer.
std::uint32_t taken_of(const engine::EngineOptions& options, std::size_t size) {
  path::SimNetwork network(1);
  const auto own = *base::SocketAddress::from_ip("10.0.0.1", 20480);
  engine::Engine engine(std::move(*network.attach(own)), own, options, 1, 2);
  const engine::PortHandle port = *engine.ports().open(5);
  std::vector<std::byte> bytes(size);
  const iovec piece{bytes.data(), bytes.size()};
  const engine::RemotePort nobody{*base::SocketAddress::from_ip("10.0.0.2", 20480), 5};
  std::uint32_t taken = 0;
  engine::OperationHandle operation;
  while (taken < 200 && engine.messages().send(port, {.to = nobody, .part = {{&piece, 1}, size}}, operation,
                                               base::Instant{}) == Status::ok) {
    ++taken;
  }
  return taken;
}

TEST(ChannelOptions, EachChannelHasItsOwnDepth) {
  engine::EngineOptions options;
  ASSERT_TRUE(options.set("command_depth", "20"));
  ASSERT_TRUE(options.set("data_depth", "70"));
  EXPECT_EQ(taken_of(options, 8), 20U);
  EXPECT_EQ(taken_of(options, 10'000), 70U);
}

TEST(ChannelOptions, OutsideTheirRangeTheyAreRefusedAndTheErrorSaysWhich) {
  engine::EngineOptions options;
  constexpr std::array<std::array<std::string_view, 2>, 6> kWrong{{{"command_depth", "15"},
                                                                   {"command_depth", "65537"},
                                                                   {"data_depth", "15"},
                                                                   {"data_depth", "65537"},
                                                                   {"command_segment", "1199"},
                                                                   {"command_segment", "1921"}}};
  for (const auto& [name, value] : kWrong) {
    const auto refused = options.set(name, value);
    ASSERT_FALSE(refused) << name << " " << value;
    const auto row = std::ranges::find(option_table(), name, &OptionRow::name);
    EXPECT_NE(refused.error().message.find(name), std::string::npos) << refused.error().message;
    EXPECT_NE(refused.error().message.find(std::to_string(row->value_min)), std::string::npos);
  }
}

/// Returns the longest datagram that is sent when `count` messages of `size` bytes wait together.
std::uint32_t longest_datagram(const engine::EngineOptions& options, std::size_t size, int count) {
  path::SimNetwork network(1);
  path::SimLink link;
  link.datagram_size_max = 8972;
  network.set_default_link(link);
  const std::array at{*base::SocketAddress::from_ip("10.0.0.1", 20480),
                      *base::SocketAddress::from_ip("10.0.0.2", 20480)};
  engine::Engine near(std::move(*network.attach(at[0])), at[0], options, 1, 2);
  auto far = std::move(*network.attach(at[1]));
  link::Link peer(link::LinkOptions{}, 3, 4);
  const engine::PortHandle port = *near.ports().open(5);
  EXPECT_EQ(near.ports().find(port)->events->reserve(1000), Status::ok);
  std::vector<std::byte> bytes(size);
  const iovec piece{bytes.data(), bytes.size()};
  engine::OperationHandle operation;
  base::Instant now{std::chrono::seconds(1)};
  const auto send = [&](int messages) {
    for (int i = 0; i < messages; ++i)
      near.messages().send(port, {.to = {at[1], 5}, .part = {{&piece, 1}, size}}, operation, now);
  };
  send(1);  // messages that wait for a session use the least segment size of a path
  std::uint32_t longest = 0;
  link::Train train;
  for (int steps = 0; steps < 1000; ++steps) {
    if (steps == 500) send(count);
    near.progress(now);
    network.advance(now += std::chrono::microseconds(20));
    std::array<path::Arrival, 16> arrivals;
    const std::size_t arrived = far->collect(arrivals, now);
    for (const path::Arrival& arrival : std::span(arrivals).first(arrived)) {
      for (auto rest = arrival.bytes; !rest.empty();) {
        const std::size_t length =
            arrival.datagram_size == 0 ? rest.size() : std::min<std::size_t>(arrival.datagram_size, rest.size());
        const auto frame = wire::decode(rest.first(length));
        if (frame && frame->header.kind == wire::Kind::data)
          longest = std::max(longest, static_cast<std::uint32_t>(length));
        peer.receive(arrival.from, rest.first(length), now, 8972);
        while (peer.next_delivery()) {
        }
        rest = rest.subspan(length);
      }
    }
    peer.expire(now);
    while (peer.next_notice()) {
    }
    while (peer.next_train(now, 65'000, 64, train)) {
      const path::Train sent{.to = train.to,
                             .pieces = std::span<const iovec>(train.pieces, train.piece_count),
                             .datagram_size = train.datagram_size};
      far->send({&sent, 1}, now);
    }
  }
  return longest;
}

TEST(ChannelOptions, EachChannelHasItsOwnSegmentSize) {
  engine::EngineOptions options;
  ASSERT_TRUE(options.set("command_segment", "1300"));
  ASSERT_TRUE(options.set("datagram_size", "5000"));
  const std::uint32_t packed = longest_datagram(options, 100, 200);
  EXPECT_LE(packed, 1300U);
  EXPECT_GT(packed, 1200U);
  const std::uint32_t chunk = longest_datagram(options, 100'000, 1);
  EXPECT_LE(chunk, 5000U);
  EXPECT_GT(chunk, 4900U);
}

}  // namespace
}  // namespace fairlead::embedded
