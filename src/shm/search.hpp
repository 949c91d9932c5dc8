#pragma once
// Looking for peers on this host: whom we have asked, why somebody was not found, and who waits for a session over the
// network to prove that it is who it says.

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/fifo.hpp"
#include "base/sip_hash.hpp"
#include "base/socket_address.hpp"
#include "base/time.hpp"
#include "shm/connections.hpp"

namespace fairlead::shm {

class Search {
 public:
  /// `is_forced`: there is no other way to a peer, so the network only serves to learn who it is.
  Search(Connections& connections, bool is_forced) : connections_(connections), is_forced_(is_forced) {}

  /// Begins to open the peer, unless that has begun. `key`: as Connections::ask().
  void ask(const base::SocketAddress& address, const std::optional<base::SipKey>& key, base::Instant now);
  void found(const base::SocketAddress& address) { reasons_.erase(address); }
  void failed(const base::SocketAddress& address, std::string_view reason);
  /// Why a peer is not reached this way; empty if nothing is known.
  std::string reason(const base::SocketAddress& address) const;

  /// Somebody of another user who waits for Transport::meet() ...
  bool has_room() { return claims_.has_room(1); }
  void note_claim(const base::SocketAddress& address) { claims_.push(address); }
  std::optional<base::SocketAddress> next_claim() { return claims_.take(); }
  /// ... and one whom we want to meet, if it is forced.
  std::optional<base::SocketAddress> next_wanted() { return wanted_.take(); }

 private:
  static constexpr std::size_t kReasonsMax = 1024;

  Connections& connections_;
  bool is_forced_;
  std::unordered_map<base::SocketAddress, std::string, base::SocketAddressHash> reasons_;
  base::Fifo<base::SocketAddress> claims_, wanted_;
};

}  // namespace fairlead::shm
