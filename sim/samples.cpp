#include "sim/samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/addresses.hpp"

namespace fairlead::sim {

Samples::Samples(const Scenario& scenario, base::Instant begins, base::Duration time)
    : begins_(begins), next_at_(begins), step_(std::max(time / kSteps, base::Duration(1))) {
  for (const FlowPlan& flow : scenario.flows) {
    if (std::ranges::find(pairs_, Pair{flow.from, flow.to}) == pairs_.end() && pairs_.size() < kLinesMax) {
      pairs_.push_back({flow.from, flow.to});
      const std::string label = fmt::format("{} to {}", flow.from, flow.to);
      in_flight_.push_back({label, {}});
      round_trip_.push_back({label, {}});
    }
    if (std::ranges::find(receivers_, flow.to) == receivers_.end() && receivers_.size() < kLinesMax) {
      receivers_.push_back(flow.to);
      goodput_.push_back({fmt::format("at {}", flow.to), {}});
    }
  }
  delivered_.resize(receivers_.size());
}

void Samples::take(std::vector<Host>& hosts, base::Instant now) {
  next_at_ = seconds_.size() + 1 < kStepsMax ? now + step_ : base::kNever;
  seconds_.push_back(std::chrono::duration<double>(now - begins_).count());
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    double in_flight = NAN, round_trip = NAN;
    if (Host& from = hosts[pairs_[i].from]; from.is_up()) {
      if (const auto peer = from.engine()->link()->find(address_of(pairs_[i].to))) {
        const link::PeerFacts facts = from.engine()->link()->facts(*peer);
        in_flight = static_cast<double>(facts.bytes_in_flight) / 1024;
        if (facts.round_trip.count() != 0) round_trip = static_cast<double>(facts.round_trip.count()) / 1e3;
      }
    }
    in_flight_[i].values.push_back(in_flight);
    round_trip_[i].values.push_back(round_trip);
  }
  for (std::size_t i = 0; i < receivers_.size(); ++i) {
    double goodput = NAN;
    if (Host& host = hosts[receivers_[i]]; host.is_up()) {
      const std::uint64_t delivered = host.engine()->link()->counters().message_bytes_delivered;
      // A restarted engine counts from zero.
      const std::uint64_t more = delivered - std::min(delivered, delivered_[i]);
      goodput = static_cast<double>(more) * 1e3 / static_cast<double>(step_.count());
      delivered_[i] = delivered;
    }
    goodput_[i].values.push_back(goodput);
  }
}

}  // namespace fairlead::sim
