#pragma once
// Any number of hosts in one process on virtual time, and a network between them. It loses, repeats, reorders, corrupts
// and delays datagrams, all drawn from one seed. The same seed and the same calls give the same run, bit for bit.
//
// The driver owns time. It calls send() and collect() of the paths with the current virtual time, and between them
//   now = min(network.next_event(), every engine's next timer);  network.advance(now);
// Each datagram draws the same number of random values whatever its fate, so changing one probability moves no other
// draw. The network must outlive its paths.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <unordered_map>
#include <vector>

#include "base/socket_address.hpp"
#include "base/time.hpp"
#include "path/sim_link.hpp"
#include "path/sim_path.hpp"

namespace fairlead::path {

class SimNetwork {
 public:
  explicit SimNetwork(std::uint64_t seed) : random_(seed) {}
  SimNetwork(const SimNetwork&) = delete;
  SimNetwork& operator=(const SimNetwork&) = delete;
  ~SimNetwork();

  /// Makes a host's path at its own address; `in_use` if the address is taken.
  Result<std::unique_ptr<SimPath>> attach(const base::SocketAddress& address, const SimPathOptions& options = {});

  void set_default_link(const SimLink& link) { default_link_ = link; }
  /// Sets one direction, for datagrams sent from now on.
  void set_link(const base::SocketAddress& from, const base::SocketAddress& to, const SimLink& link);
  const SimLink& link(const base::SocketAddress& from, const base::SocketAddress& to) const;
  /// Sets the last link that all datagrams to this host pass.
  void set_downlink(const base::SocketAddress& to, const SimDownlink& downlink) { downlinks_[to].own = downlink; }

  /// When the next datagram arrives; kNever if none is in flight.
  base::Instant next_event() const { return flights_.empty() ? base::kNever : flights_.begin()->first.at; }
  /// Delivers all datagrams that arrive up to `now`.
  void advance(base::Instant now);

  const SimCounters& counters() const { return counters_; }

 private:
  friend class SimPath;

  struct Direction {
    std::optional<SimLink> own;  // else the default
    base::Instant busy_until{};  // when the last byte accepted so far will have left
    std::uint32_t losses_left = 0;
    base::Instant losses_until{};
    std::uint64_t datagrams = 0;
  };
  struct Downlink {
    SimDownlink own;
    base::Instant busy_until{};
  };
  /// Key of an arrival; `number` orders those of the same time.
  struct Moment {
    base::Instant at;
    std::uint64_t number = 0;
    auto operator<=>(const Moment&) const = default;
  };
  struct Flight {
    base::SocketAddress from, to;
    std::vector<std::byte> bytes;
    bool has_passed_downlink = false;
  };
  struct Pair {
    base::SocketAddress from, to;
    bool operator==(const Pair&) const = default;
  };
  struct PairHash {
    std::size_t operator()(const Pair& pair) const noexcept {
      return base::SocketAddressHash{base::SocketAddressHash{}(pair.from)}(pair.to);
    }
  };

  /// Bytes accepted that have not left yet.
  std::uint64_t queued_bytes(const base::SocketAddress& from, const base::SocketAddress& to, base::Instant now) const;
  /// Draws the fate of one datagram that has left its sender.
  void carry(Flight flight, base::Instant now);
  void schedule(base::Instant at, Flight flight);
  bool is_lost(const SimLink& road, Direction& direction, double drawn, base::Instant now);
  /// Returns true if the datagram has to wait for the receiver's downlink, or was lost there.
  bool queue_at_downlink(Flight& flight, base::Instant now);
  void land(Flight flight, base::Instant now);
  void detach(const SimPath& path);
  double draw();

  std::mt19937_64 random_;
  SimLink default_link_;
  std::unordered_map<Pair, Direction, PairHash> directions_;
  std::unordered_map<base::SocketAddress, Downlink, base::SocketAddressHash> downlinks_;
  std::unordered_map<base::SocketAddress, SimPath*, base::SocketAddressHash> paths_;
  std::map<Moment, Flight> flights_;
  std::uint64_t flights_made_ = 0;
  SimCounters counters_;
};

}  // namespace fairlead::path
