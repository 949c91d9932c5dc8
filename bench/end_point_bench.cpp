// Cost to look up the senders of received messages in a table of N end points: all messages from one sender, or from
// random ones. A machine takes up to 128 messages at once and prefetches their end points.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "engine/core.hpp"
#include "net/end_point_table.hpp"
#include "net/taken_events.hpp"

namespace {

using namespace fairlead;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMessages = 1 << 20;
constexpr int kRounds = 7;

engine::RemotePort sender(std::size_t number) {
  const auto engine = base::SocketAddress::from_ip("10.0.0.5", static_cast<std::uint16_t>(number / 100 + 1)).value();
  return {engine, static_cast<std::uint32_t>(34 << 12 | (number % 100 + 1))};
}

enum class Prefetch { no, yes };

/// Median over the rounds, in ns per message.
double measure(net::EndPointTable& table, const std::vector<engine::Completion>& messages, Prefetch prefetch) {
  std::array<double, kRounds> rounds{};
  for (double& round : rounds) {
    const auto begin = Clock::now();
    for (std::size_t i = 0; i < messages.size(); i += net::TakenEvents::kMost) {
      const std::span batch(&messages[i], net::TakenEvents::kMost);
      if (prefetch == Prefetch::yes) table.prefetch_senders(batch);
      for (const engine::Completion& message : batch) (void)table.find_or_make(message.source);
    }
    round = std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / double(messages.size());
  }
  std::ranges::sort(rounds);
  return rounds[kRounds / 2];
}

}  // namespace

int main() {
  for (const std::size_t end_points : {1UL, 1000UL, 10'000UL, 100'000UL}) {
    auto table = std::make_unique<net::EndPointTable>(1);
    std::vector<net::EndPoint> kept;
    for (std::size_t i = 0; i < end_points; ++i) kept.push_back(table->find_or_make(sender(i)));
    std::mt19937_64 random(1);
    std::vector<engine::Completion> messages(kMessages);
    for (engine::Completion& message : messages) message.source = sender(random() % end_points);
    const double alone = measure(*table, messages, Prefetch::no);
    fmt::print("{:7} end points: {:5.1f} ns a message, prefetched {:5.1f} ns\n", end_points, alone,
               measure(*table, messages, Prefetch::yes));
  }
}
