#include "shm/partings.hpp"

#include <optional>

#include "base/ensure.hpp"

namespace fairlead::shm {

void Partings::want(bool is_wanted) {
  if (is_forced_) return;
  is_wanted_ = is_wanted;
  connections_.set_closed(is_wanted);
  for (std::uint32_t index = 0; is_wanted && index < peers_.size(); ++index) begin(index);
}

void Partings::ask(std::uint32_t index) {
  TransportPeer& peer = peers_[index];
  if (!peer.was_asked && !peer.has_asked)
    peer.has_asked = connections_.peer(peer.connection_slot).socket.tell(Socket::Parting::asks);
}

/// Without memory for the notice, does nothing.
void Partings::begin(std::uint32_t index) {
  TransportPeer& peer = peers_[index];
  if (peer.is_parting || peer.connection_slot == TransportPeers::kNone || !notices_.has_room(1)) return;
  peer.is_parting = true;
  ++count_;
  notices_.push({.kind = link::Notice::Kind::parting, .peer = peers_.handle_of(index)});
  ask(index);
}

void Partings::take_request(std::uint32_t connection_slot) {
  const std::uint32_t index = peers_.at_connection(connection_slot);
  if (index == TransportPeers::kNone || is_forced_) return;
  peers_[index].was_asked = true;
  begin(index);
}

void Partings::take_done(std::uint32_t connection_slot) {
  const std::uint32_t index = peers_.at_connection(connection_slot);
  if (index != TransportPeers::kNone) peers_[index].is_done = true;
}

/// Returns whether both sides have read everything that the other has written.
bool Partings::has_read_all(std::uint32_t index) {
  const TransportPeer& peer = peers_[index];
  Connection& there = connections_.peer(peer.connection_slot);
  return there.state == Connection::State::open && !peer.is_awaited() && !there.reader.has_record() &&
         there.writer.look() && there.writer.passed() == there.writer.written();
}

void Partings::go_apart(std::uint32_t index) {
  TransportPeer& peer = peers_[index];
  Connection& there = connections_.peer(peer.connection_slot);
  if (peer.is_done) {
    there.reader.tell();
    return connections_.end(peer.connection_slot, Connections::kParted, End::parted);
  }
  if (!peer.has_said_done) peer.has_said_done = there.socket.tell(Socket::Parting::is_done);
}

void Partings::end(std::uint32_t index, base::Instant now) {
  const TransportPeer& peer = peers_[index];
  const base::SocketAddress address = peer.address;
  const std::optional<base::SipKey> key = peer.key;
  const bool is_too_late = !peer.was_asked && !is_wanted_;  // we do not want to part any more
  --count_;
  if (is_wanted_) parted_.push_back(address);  // there is room
  notices_.push({.kind = link::Notice::Kind::parted, .peer = peers_.handle_of(index)});
  peers_.forget(index);
  if (is_too_late) search_.ask(address, key, now);
}

void Partings::check() const {
  std::uint32_t count = 0;
  for (std::uint32_t index = 0; index < peers_.size(); ++index) {
    const TransportPeer& peer = peers_[index];
    ENSURE(!peer.is_parting || peer.connection_slot != TransportPeers::kNone, "peer {}: there is nothing to part from",
           index);
    count += peer.is_parting ? 1 : 0;
  }
  ENSURE(count == count_, "{} of {} peers part", count_, count);
}

}  // namespace fairlead::shm
