#pragma once
// A snapshot of an engine for people and programs: its counters, and what it knows of its peers.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <array>

#include "base/counter_row.hpp"
#include "base/socket_address.hpp"
#include "base/time.hpp"

namespace fairlead::observe {

/// A counter with its printed name, e.g. {"link.dropped.crc", 3}.
struct CounterFact {
  std::string name;
  std::uint64_t value = 0;
};

struct PeerFact {
  base::SocketAddress address;
  std::string_view path = "udp";  // or "shm"
  std::string path_reason;        // why not "shm", for a peer that could be; may be empty
  std::string memory_reason{};    // if over "shm": why its private memory cannot be reached
  bool is_connected = false;
  base::Duration round_trip{};
  base::Duration silent_for{};  // since it was last heard; since the first attempt if never
  std::uint64_t bytes_in_flight = 0;
};

struct EngineFacts {
  std::string path;  // "udp", "self"
  std::vector<CounterFact> counters;
  std::vector<PeerFact> peers;  // at most kPeersInFacts
  std::size_t peers_total = 0;  // all peers
  static constexpr std::size_t kPeersInFacts = 1024;

  /// Adds counters. `prefix` includes its dot: "link.".
  template <typename Counters, std::size_t kRows>
  void add(std::string_view prefix, const std::array<base::CounterRow<Counters>, kRows>& rows, const Counters& values) {
    for (const auto& row : rows) counters.push_back({std::string(prefix).append(row.name), values.*row.value});
  }
};

}  // namespace fairlead::observe
