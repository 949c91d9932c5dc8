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

base::Duration time_on_wire(const SimLink& link, std::size_t bytes) {
  if (link.bytes_per_second == 0) return {};
  return base::Duration(static_cast<std::int64_t>(bytes * kNanosPerSecond / link.bytes_per_second));
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

// The standard fixes the engine's numbers but not its distributions: this one is the same everywhere.
double SimNetwork::draw() {
  return static_cast<double>(random_() >> 11) * 0x1p-53;
}

std::uint64_t SimNetwork::queued_bytes(const base::SocketAddress& from, const base::SocketAddress& to,
                                       base::Instant now) const {
  const auto found = directions_.find({from, to});
  if (found == directions_.end() || found->second.busy_until <= now) return 0;
  const double seconds = std::chrono::duration<double>(found->second.busy_until - now).count();
  return static_cast<std::uint64_t>(seconds * static_cast<double>(link(from, to).bytes_per_second));
}

void SimNetwork::carry(Flight flight, base::Instant now) {
  const SimLink road = link(flight.from, flight.to);
  const double loss = draw(), duplication = draw(), reordering = draw(), corruption = draw();
  const double reorder_share = draw(), duplicate_share = draw(), corrupt_share = draw();
  const std::size_t size = flight.bytes.size();
  counters_.taken += 1;

  base::Instant arrives = now + road.delay;
  if (road.bytes_per_second != 0) {
    if (queued_bytes(flight.from, flight.to, now) + size > road.queue_bytes_max) {
      counters_.queue_overran += 1;
      return;
    }
    base::Instant& busy_until = directions_[{flight.from, flight.to}].busy_until;
    busy_until = std::max(busy_until, now) + time_on_wire(road, size);
    arrives = busy_until + road.delay;
  }
  if (loss < road.loss) {
    counters_.lost += 1;
    return;
  }
  if (reordering < road.reordering) {
    counters_.reordered += 1;
    arrives += scaled(road.reorder_delay, reorder_share);
  }
  if (duplication < road.duplication) {
    counters_.duplicated += 1;
    schedule(arrives + scaled(road.reorder_delay, duplicate_share), flight);
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
  while (!flights_.empty() && flights_.begin()->first.at <= now)
    land(std::move(flights_.extract(flights_.begin()).mapped()));
}

void SimNetwork::land(Flight flight) {
  if (const auto receiver = paths_.find(flight.to); receiver != paths_.end()) {
    const bool has_room = receiver->second->deliver(flight.from, std::move(flight.bytes));
    (has_room ? counters_.delivered : counters_.receiver_overran) += 1;
    return;
  }
  counters_.nobody_there += 1;
  if (const auto sender = paths_.find(flight.from); sender != paths_.end()) sender->second->refuse(flight.to);
}

}  // namespace fairlead::path
