// Cost to look up the senders of received messages in a table of N end points: all messages from one sender, or from
// random ones; one by one with a reference each, and as a machine does it: lent, up to 128 at once.

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

enum class How { alone, lent };

/// Median over the rounds, in ns per message.
double measure(net::EndPointTable& table, const std::vector<engine::RemotePort>& messages, How how) {
  constexpr std::size_t kBatch = net::TakenEvents::kMost;
  std::array<double, kRounds> rounds{};
  std::array<const engine::RemotePort*, kBatch> sources{};
  std::array<net::EndPointState*, kBatch> senders{};
  for (double& round : rounds) {
    const auto begin = Clock::now();
    for (std::size_t i = 0; i < messages.size(); i += kBatch) {
      if (how == How::alone) {
        for (std::size_t j = 0; j < kBatch; ++j) (void)table.find_or_make(messages[i + j]);
        continue;
      }
      for (std::size_t j = 0; j < kBatch; ++j) sources[j] = &messages[i + j];
      table.lend_senders(sources, senders);
      table.release_senders();
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
    std::vector<engine::RemotePort> messages(kMessages);
    for (engine::RemotePort& message : messages) message = sender(random() % end_points);
    const double alone = measure(*table, messages, How::alone);
    fmt::print("{:7} end points: {:5.1f} ns a message, lent in batches {:5.1f} ns\n", end_points, alone,
               measure(*table, messages, How::lent));
  }
}
