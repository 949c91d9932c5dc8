#pragma once
// The local peers by slot, and their slots by address. A reused slot gets a new generation.

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/socket_address.hpp"
#include "shm/connection.hpp"

namespace fairlead::shm {

/// A peer that is gone, and the exposure that it said it was using (shm/use.hpp).
struct Departure {
  std::uint32_t slot = 0;
  std::uint64_t at = 0;
};

class ConnectionTable {
 public:
  static constexpr std::uint32_t kNone = ~0U;

  explicit ConnectionTable(std::uint32_t peers_max) : peers_max_(peers_max) {}

  Connection& operator[](std::uint32_t slot) { return *peers_[slot]; }
  const Connection& operator[](std::uint32_t slot) const { return *peers_[slot]; }
  /// Returns the number of slots that were ever in use.
  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(peers_.size()); }

  /// Returns the slot of this address.
  std::uint32_t find(const base::SocketAddress& address) const;
  /// Returns a closed slot, or kNone if none is left. The caller sets its state.
  std::uint32_t acquire();
  /// Makes find() return `slot` for this address.
  void name(std::uint32_t slot, const base::SocketAddress& address);
  /// Closes the slot and drops everything kept of the peer. If the peer was using an exposure, the slot is not reused
  /// before take_departed() reports it, because the slot number names the peer.
  void release(std::uint32_t slot);
  std::optional<Departure> take_departed();
  /// Returns whether the peer that we assigned this bit of our doorbell may still be there.
  bool may_live(std::uint32_t doorbell_bit) const {
    return doorbell_bit < size() && peers_[doorbell_bit]->state != Connection::State::closed;
  }
  std::uint32_t size_max() const noexcept { return peers_max_; }

 private:
  std::uint32_t peers_max_;
  std::vector<std::unique_ptr<Connection>> peers_;
  std::unordered_map<base::SocketAddress, std::uint32_t, base::SocketAddressHash> by_address_;
  std::uint32_t departed_ = 0;  // slots that wait for take_departed()
};

}  // namespace fairlead::shm
