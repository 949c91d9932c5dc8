#pragma once
// The search for peers on this host: whom we have asked, why a peer was not found, and which strangers wait for a
// network session to prove their identity.

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
  /// `is_forced` means that shared memory is the only transport; the network then only serves to authenticate peers.
  Search(Connections& connections, bool is_forced) : connections_(connections), is_forced_(is_forced) {}

  /// Starts to open the peer, unless that is under way. `key`: see Connections::ask().
  void ask(const base::SocketAddress& address, const std::optional<base::SipKey>& key, base::Instant now);
  void found(const base::SocketAddress& address) { reasons_.erase(address); }
  void failed(const base::SocketAddress& address, std::string_view reason);
  /// Returns why shared memory does not reach a peer. Empty if no reason is known.
  std::string reason(const base::SocketAddress& address) const;

  /// Queue of peers of other users that wait for Transport::meet().
  bool has_room() { return claims_.has_room(1); }
  void note_claim(const base::SocketAddress& address) { claims_.push(address); }
  std::optional<base::SocketAddress> next_claim() { return claims_.take(); }
  /// Returns a peer that we want to meet, if is_forced.
  std::optional<base::SocketAddress> next_wanted() { return wanted_.take(); }

 private:
  static constexpr std::size_t kReasonsMax = 1024;

  Connections& connections_;
  bool is_forced_;
  std::unordered_map<base::SocketAddress, std::string, base::SocketAddressHash> reasons_;
  base::Fifo<base::SocketAddress> claims_, wanted_;
};

}  // namespace fairlead::shm
