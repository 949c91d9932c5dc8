#include "path/sim_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/ensure.hpp"

namespace fairlead::path {
namespace {

constexpr std::size_t kFlightsMax = 1u << 20;
constexpr std::uint64_t kNanosPerSecond = 1'000'000'000;

base::Duration scaled(base::Duration longest, double share) {
  return base::Duration(static_cast<std::int64_t>(static_cast<double>(longest.count()) * share));
}

base::Duration time_on_wire(std::uint64_t bytes_per_second, std::size_t bytes) {
  if (bytes_per_second == 0) return {};
  return base::Duration(static_cast<std::int64_t>(bytes * kNanosPerSecond / bytes_per_second));
}

/// Bytes accepted that have not left yet.
std::uint64_t bytes_waiting(base::Instant busy_until, std::uint64_t bytes_per_second, base::Instant now) {
  if (busy_until <= now) return 0;
  const double seconds = std::chrono::duration<double>(busy_until - now).count();
  return static_cast<std::uint64_t>(seconds * static_cast<double>(bytes_per_second));
}

}  // namespace

SimNetwork::~SimNetwork() {
  ENSURE(paths_.empty(), "network ends before {} of its paths", paths_.size());
}

Result<std::unique_ptr<SimPath>> SimNetwork::attach(const base::SocketAddress& address, const SimPathOptions& options) {
  if (paths_.contains(address))
    return std::unexpected(Error{Status::in_use, EADDRINUSE,
                                 fmt::format("{} is taken in this network: choose another", address.to_string())});
  std::unique_ptr<SimPath> path(new SimPath(*this, address, options));
  paths_.emplace(address, path.get());
  return path;
}

void SimNetwork::detach(const SimPath& path) {
  paths_.erase(path.address_);
}

void SimNetwork::set_link(const base::SocketAddress& from, const base::SocketAddress& to, const SimLink& link) {
  directions_[{from, to}].own = link;
}

const SimLink& SimNetwork::link(const base::SocketAddress& from, const base::SocketAddress& to) const {
  const auto found = directions_.find({from, to});
  return found == directions_.end() || !found->second.own ? default_link_ : *found->second.own;
}

// The standard fixes the generator's values but not its distributions; this distribution is the same everywhere.
double SimNetwork::draw() {
  return static_cast<double>(random_() >> 11) * 0x1p-53;
}

std::uint64_t SimNetwork::queued_bytes(const base::SocketAddress& from, const base::SocketAddress& to,
                                       base::Instant now) const {
  const auto found = directions_.find({from, to});
  if (found == directions_.end()) return 0;
  return bytes_waiting(found->second.busy_until, link(from, to).bytes_per_second, now);
}

bool SimNetwork::is_lost(const SimLink& road, Direction& direction, double drawn, base::Instant now) {
  direction.datagrams += 1;
  if (direction.losses_left > 0 && now <= direction.losses_until) {
    direction.losses_left -= 1;
    return true;
  }
  if (road.loss_every != 0 && direction.datagrams % road.loss_every == 0) return true;
  const auto burst = std::max(road.loss_burst, 1u);
  if (drawn >= road.loss / burst && road.loss < 1) return false;
  direction.losses_left = road.loss < 1 ? burst - 1 : 0;
  direction.losses_until = now + road.loss_burst_time;
  return true;
}

void SimNetwork::carry(Flight flight, base::Instant now) {
  const SimLink road = link(flight.from, flight.to);
  const double loss = draw(), duplication = draw(), reordering = draw(), corruption = draw();
  const double reorder_share = draw(), duplicate_share = draw(), corrupt_share = draw();
  const std::size_t size = flight.bytes.size();
  Direction& direction = directions_[{flight.from, flight.to}];
  counters_.taken += 1;

  base::Instant arrives = now + road.delay;
  if (road.bytes_per_second != 0) {
    if (queued_bytes(flight.from, flight.to, now) + size > road.queue_bytes_max) {
      counters_.queue_overran += 1;
      return;
    }
    direction.busy_until = std::max(direction.busy_until, now) + time_on_wire(road.bytes_per_second, size);
    arrives = direction.busy_until + road.delay;
  }
  if (is_lost(road, direction, loss, now)) {
    counters_.lost += 1;
    return;
  }
  if (road.black_hole_above != 0 && size > road.black_hole_above) {
    counters_.too_big_on_the_way += 1;
    return;
  }
  if (reordering < road.reordering) {
    counters_.reordered += 1;
    arrives += scaled(road.reorder_delay, reorder_share);
  }
  if (duplication < road.duplication) {
    counters_.duplicated += 1;
    const base::Duration longest = road.duplicate_delay.count() != 0 ? road.duplicate_delay : road.reorder_delay;
    schedule(arrives + scaled(longest, duplicate_share), flight);
  }
  if (corruption < road.corruption && size > 0) {
    counters_.corrupted += 1;
    const auto bit = static_cast<std::size_t>(corrupt_share * static_cast<double>(size * 8));
    flight.bytes[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
  }
  schedule(arrives, std::move(flight));
}

void SimNetwork::schedule(base::Instant at, Flight flight) {
  if (flights_.size() >= kFlightsMax) {
    counters_.queue_overran += 1;
    return;
  }
  flights_.emplace(Moment{at, flights_made_++}, std::move(flight));
}

void SimNetwork::advance(base::Instant now) {
  while (!flights_.empty() && flights_.begin()->first.at <= now) {
    auto first = flights_.extract(flights_.begin());
    land(std::move(first.mapped()), first.key().at);
  }
}

bool SimNetwork::queue_at_downlink(Flight& flight, base::Instant now) {
  const auto found = downlinks_.find(flight.to);
  if (flight.has_passed_downlink || found == downlinks_.end() || found->second.own.bytes_per_second == 0) return false;
  auto& [own, busy_until] = found->second;
  if (bytes_waiting(busy_until, own.bytes_per_second, now) + flight.bytes.size() > own.queue_bytes_max) {
    counters_.queue_overran += 1;
    return true;
  }
  busy_until = std::max(busy_until, now) + time_on_wire(own.bytes_per_second, flight.bytes.size());
  flight.has_passed_downlink = true;
  schedule(busy_until, std::move(flight));
  return true;
}

void SimNetwork::land(Flight flight, base::Instant now) {
  if (queue_at_downlink(flight, now)) return;
  if (const auto receiver = paths_.find(flight.to); receiver != paths_.end()) {
    const bool has_room = receiver->second->deliver(flight.from, std::move(flight.bytes));
    (has_room ? counters_.delivered : counters_.receiver_overran) += 1;
    return;
  }
  counters_.nobody_there += 1;
  if (const auto sender = paths_.find(flight.from); sender != paths_.end()) sender->second->refuse(flight.to);
}

}  // namespace fairlead::path
