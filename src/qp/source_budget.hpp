#pragma once
// Limits malformed group datagrams of a source: after kWrongMost in a second the engine ignores that source for the
// rest of the second. The source address is not verified. So the limit bounds the engine's work, and shuts nobody out
// for long. Sources with the same hash share a limit.

#include <array>
#include <chrono>
#include <cstdint>

#include "base/socket_address.hpp"
#include "base/time.hpp"

namespace fairlead::qp {

class SourceBudget {
 public:
  static constexpr std::uint32_t kWrongMost = 64;  // each second

  bool is_spent(const base::SocketAddress& source, base::Instant now) const {
    const Place& place = places_[place_of(source)];
    return place.wrong >= kWrongMost && now < place.until;
  }
  void note_wrong(const base::SocketAddress& source, base::Instant now) {
    Place& place = places_[place_of(source)];
    if (now >= place.until) place = {.until = now + std::chrono::seconds(1), .wrong = 0};
    ++place.wrong;
  }

 private:
  static constexpr std::size_t kPlaces = 256;
  struct Place {
    base::Instant until{};
    std::uint32_t wrong = 0;
  };

  static std::size_t place_of(const base::SocketAddress& source) {
    base::SocketAddress host = source;
    host.port = 0;
    return base::SocketAddressHash{}(host) % kPlaces;
  }

  std::array<Place, kPlaces> places_{};
};

}  // namespace fairlead::qp
