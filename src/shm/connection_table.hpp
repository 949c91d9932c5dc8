#pragma once
// The peers of this host by slot, and the slots by address. A slot is used again under another generation.

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/socket_address.hpp"
#include "shm/connection.hpp"

namespace fairlead::shm {

/// A peer that is gone, and the exposure that it said it was at (shm/use.hpp).
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
  /// Slots that were ever in use.
  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(peers_.size()); }

  /// The slot that has this address.
  std::uint32_t find(const base::SocketAddress& address) const;
  /// A slot that is closed; the caller sets its state. kNone if there is none left.
  std::uint32_t acquire();
  /// From now on find() leads here.
  void name(std::uint32_t slot, const base::SocketAddress& address);
  /// Closes the slot: all that was kept of the peer goes. If it was at an exposure, the slot is used again only when
  /// take_departed() has told so: its number is the next peer's name.
  void release(std::uint32_t slot);
  std::optional<Departure> take_departed();
  /// Whether the peer that we told to set this bit in our doorbell may still be there.
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
