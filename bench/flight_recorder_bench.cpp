// Cost to record an event: for one peer or many in turn, with events far apart or close together (then merged into
// one).

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/time.hpp"
#include "observe/flight_recorder.hpp"

namespace fairlead::bench {
namespace {

constexpr int kRounds = 21;
constexpr std::uint32_t kEvents = 1'000'000;

// Median over the rounds, in nanoseconds per event.
double record_ns(std::uint32_t peers, base::Duration step) {
  observe::FlightRecorder recorder;
  base::Instant pretended{};
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    const base::Instant start = base::MonotonicClock::now();
    for (std::uint32_t i = 0; i < kEvents; ++i) {
      pretended += step;
      recorder.record(i % peers, observe::FlightKind::sent, 1, i, pretended);
    }
    rounds.push_back(static_cast<double>((base::MonotonicClock::now() - start).count()) / kEvents);
  }
  std::ranges::sort(rounds);
  return rounds[kRounds / 2];
}

}  // namespace
}  // namespace fairlead::bench

int main() {
  using namespace std::chrono_literals;
  for (const std::uint32_t peers : {1u, 4u, 64u, 256u, 1024u}) {
    fmt::print("{:5} peers: {:6.2f} ns an event, {:6.2f} ns when it adds to the one before\n", peers,
               fairlead::bench::record_ns(peers, 1ms), fairlead::bench::record_ns(peers, 1ns));
  }
}
