#include "transport/transports.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "base/rare.hpp"

namespace fairlead::transport {
namespace {

link::Obstacle obstacle_of(const path::Unreachable& hint) {
  if (hint.is_prohibited) return link::Obstacle::prohibited;
  if (hint.system_errno == EPERM) return link::Obstacle::not_let_out;
  return hint.system_errno == ECONNREFUSED ? link::Obstacle::nobody_listens : link::Obstacle::no_route;
}

}  // namespace

Transports::Transports(std::unique_ptr<path::Path> path, const Plan& plan, std::uint64_t epoch, std::uint64_t seed,
                       std::unique_ptr<shm::Transport> shm)
    : path_(std::move(path)),
      link_(plan.link, epoch, seed, plan.sealing),
      shm_(std::move(shm)),
      flight_(link_, plan.link.peers_max),
      hot_peers_(plan.hot_peers, plan.link.peers_max),
      offences_(plan.link.peers_max),
      datagram_size_max_(plan.datagram_size_max),
      sealed_only_(plan.sealing ? plan.sealing->required : std::vector<base::AddressRange>()),
      is_udp_chosen_(plan.is_udp_chosen) {}

Status Transports::meet(const base::SocketAddress& address, base::Instant now, link::PeerHandle& peer) {
  if (address.port == 0 || address.ip == base::SocketAddress{}.ip) return Status::unreachable;
  std::optional<link::PeerHandle> found;
  if (shm_) {
    found = shm_->find(address);
    if (!found && (shm_->is_forced() || !link_.find(address))) found = seek(address, now);
  }
  if (!found) {
    // Call Link::peer() also for a known peer: it marks the peer as used by the engine. Otherwise the link forgets the
    // peer when it drops its half-open session.
    const bool is_known = link_.find(address).has_value();
    const auto met = link_.peer(address, is_known ? 0 : path_->datagram_size_max(address), now);
    if (!met) return met.error().status;
    found = *met;
  }
  if (!shm_ || !shm_->partings().has(address)) routes_.keep(address, *found);
  peer = *found;
  return Status::ok;
}

/// Tries shared memory, with the session's key if the peer is known.
std::optional<link::PeerHandle> Transports::seek(const base::SocketAddress& address, base::Instant now) {
  const auto known = link_.find(address);
  const auto key = known ? link_.pair_key(*known) : std::nullopt;
  return key ? shm_->meet(address, *key, now) : shm_->seek(address, now);
}

std::size_t Transports::send_far(link::PeerHandle peer, const link::ShortSend& send, base::Instant now,
                                 std::span<link::OperationHandle> names) {
  const std::size_t count = link_.send_short(peer, send, now, names);
  if (count == 0) return 0;
  std::uint64_t bytes = 0;
  for (const link::SendPart& part : send.parts.first(count)) bytes += part.length;
  flight_.submitted(peer, count, bytes, now);
  send_eagerly(peer, now);
  return count;
}

void Transports::part_from_local_peers(bool is_parting, base::Instant now) {
  if (!shm_) return;
  shm_->partings().want(is_parting);
  if (!is_parting) meet_again(shm_->partings().take_parted(), now);
}

void Transports::meet_again(std::span<const base::SocketAddress> peers, base::Instant now) {
  if (!shm_) return;
  for (const base::SocketAddress& peer : peers) seek(peer, now);
}

void Transports::vouch(base::Instant now) {
  while (const auto claim = shm_->search().next_claim()) {
    const auto peer = link_.find(*claim);
    const auto key = peer ? link_.pair_key(*peer) : std::nullopt;
    if (key) shm_->meet(*claim, *key, now);
  }
  // Opens a session, so that both ends know each other even if all messages use shared memory.
  while (const auto wanted = shm_->search().next_wanted()) {
    if (link_.find(*wanted)) continue;
    const auto peer = link_.peer(*wanted, path_->datagram_size_max(*wanted), now);
    if (peer)
      link_.submit(*peer, {.envelope = {.operation = wire::Operation::done}, .pieces = {}, .wants_outcome = false},
                   now);
  }
}

std::optional<link::Notice> Transports::next_notice(base::Instant now) {
  if (shm_) {
    if (const auto notice = shm_->next_notice()) {
      routes_.forget(shm_->address(notice->peer));
      return notice;
    }
  }
  auto notice = link_.next_notice();
  if (!notice) return notice;
  if (notice->kind == link::Notice::Kind::lost) look_for_host(*notice, now);
  on_link_notice(*notice, now);
  return notice;
}

/// Asks the kernel whether a host answers at the address of a lost peer. The kernel gives up later than the link, and
/// tells nobody about a host that goes away.
void Transports::look_for_host(link::Notice& notice, base::Instant now) {
  const bool is_unclear = notice.diagnosis == link::Diagnosis::nothing_heard ||
                          notice.diagnosis == link::Diagnosis::no_route ||
                          notice.diagnosis == link::Diagnosis::told_by_icmp;
  if (!is_unclear) return;
  if (now >= host_looks_end_) {
    host_looks_end_ = now + kHostLooksFor;
    host_looks_ = 0;
  }
  if (++host_looks_ > kHostLooks) return;  // whole networks go away: the engine has better things to do
  if (path_->is_host_missing(link_.address(notice.peer))) notice.diagnosis = link::Diagnosis::no_host;
}

std::string Transports::why_not_shared(const base::SocketAddress& address) const {
  if (shm_) return shm_->search().reason(address);
  const bool is_of_this_host = address.is_loopback() || address.ip == path_->address().ip;
  return is_udp_chosen_ && is_of_this_host ? "the setting path is udp (FAIRLEAD_PATH)" : std::string();
}

/// Reports why a peer is not reached over shared memory, if that was possible. Without a reason, only if the log wants
/// it.
void Transports::report_path(const base::SocketAddress& address) {
  const std::string why = why_not_shared(address);
  if ((!shm_ || why.empty()) && !base::is_logged(LogLevel::info, LogTopic::link)) return;
  flight_.report(LogTopic::link, [&] {
    return fmt::format("{} is reached over UDP{}{}\n", address.to_string(), why.empty() ? "" : ": ", why);
  });
}

void Transports::on_link_notice(const link::Notice& notice, base::Instant now) {
  if (notice.kind == link::Notice::Kind::connected) {
    const base::SocketAddress address = link_.address(notice.peer);
    link_.set_datagram_size_max(notice.peer, path_->datagram_size_max(address), now);
    flight_.connected(notice.peer, now);
    if (!shm_ || !seek(address, now)) report_path(address);
  } else if (notice.kind != link::Notice::Kind::reassembly_lost) {
    if (const auto cooled = hot_peers_.forget(notice.peer.slot)) path_->set_hot(*cooled, false);
  }
  if (notice.kind != link::Notice::Kind::forgotten) return;
  routes_.forget(notice.peer);
  flight_.forget(notice.peer);
}

void Transports::ask(link::PeerHandle peer, base::Duration silent_for, base::Instant now) {
  const link::PeerFacts facts = link_.facts(peer);
  if (!facts.is_connected || facts.segments_in_flight != 0 || facts.messages_queued != 0 ||
      now - facts.last_heard < silent_for)
    return;
  // If the link has no room for it, there is enough traffic.
  link_.submit(peer, {.envelope = {.operation = wire::Operation::done}, .pieces = {}, .wants_outcome = false}, now);
}

std::optional<base::SocketAddress> Transports::expel(link::PeerHandle peer, std::string_view why, base::Instant now) {
  const bool is_local = shm::Transport::has(peer);
  // The peer may have gone since it was condemned, and its slot may be another peer's.
  if (is_local && !shm_->is_open(peer)) return std::nullopt;
  const base::SocketAddress address = this->address(peer);
  if (address == base::SocketAddress{}) return std::nullopt;
  flight_.report(LogTopic::engine, [&] { return fmt::format("{} is expelled: it {}\n", address.to_string(), why); });
  if (is_local) {
    shm_->connections().end(static_cast<std::uint32_t>(shm_->name_of(peer) - 1), why);
  } else {
    link_.expel(peer, now);
  }
  return address;
}

// The network --------------------------------------------------------------------------------------------------------

bool Transports::is_network_due(base::Instant now) {
  if (shm_ == nullptr || !shm_->has_peers()) return true;
  if (network_looks_ < kNetworkLooks) {
    ++network_looks_;
    return true;
  }
  if (now < network_look_at_ && link_.counters().messages_pending == 0) return false;
  network_look_at_ = now + kNetworkLookEvery;
  return true;
}

bool Transports::collect(base::Instant now) {
  const std::size_t taken_max = base::rare("engine: a pass takes one arrival") ? 1 : kArrivalsInPass;
  arrival_count_ = path_->collect(std::span(arrivals_).first(taken_max), now);
  arrival_ = 0;
  std::array<path::Unreachable, kArrivalsInPass> hints;
  const std::size_t refused = path_->unreachable(hints);
  for (const path::Unreachable& hint : std::span(hints).first(refused)) take_hint(hint, now);
  if (arrival_count_ > 0) network_looks_ = 0;
  return arrival_count_ > 0 || refused > 0;
}

void Transports::take_hint(const path::Unreachable& hint, base::Instant now) {
  if (hint.system_errno != EMSGSIZE)
    return link_.unreachable(hint.to, obstacle_of(hint), now, hint.is_local ? hint.system_errno : 0);
  const auto peer = link_.find(hint.to);
  if (!peer) return;
  if (hint.size_hint != 0) return link_.hint_datagram_size(*peer, hint.size_hint, now);
  link_.set_datagram_size_max(*peer, path_->datagram_size_max(hint.to), now);
}

std::optional<link::Delivery> Transports::next_delivery(base::Instant now) {
  for (;;) {
    if (auto delivery = link_.next_delivery()) return delivery;
    if (is_in_arrival_ && rest_.empty()) end_arrival(now);
    if (!is_in_arrival_) {
      if (arrival_ == arrival_count_) return std::nullopt;
      rest_ = arrivals_[arrival_].bytes;
      is_in_arrival_ = true;
    }
    const std::size_t step = arrivals_[arrival_].datagram_size;
    const auto datagram = rest_.first(step == 0 ? rest_.size() : std::min(step, rest_.size()));
    rest_ = rest_.subspan(datagram.size());
    link_.receive(arrivals_[arrival_].from, datagram, now, datagram_size_max_);
  }
}

void Transports::end_arrival(base::Instant now) {
  const path::Arrival& arrival = arrivals_[arrival_++];
  is_in_arrival_ = false;
  if (link_.turned_away().number != turned_away_seen_) [[unlikely]]
    report_turned_away(now);
  const auto peer = link_.find(arrival.from);
  if (!peer) return;
  flight_.received(*peer, arrival.bytes.size(), now);
  const auto change = hot_peers_.count(peer->slot, arrival.from);
  if (change.cooled) path_->set_hot(*change.cooled, false);
  if (change.heated) path_->set_hot(*change.heated, true);
}

/// Reports the hello refused last to the local log; its sender is told, too.
void Transports::report_turned_away(base::Instant now) {
  if (now < turned_away_at_) return;
  const link::TurnedAway& last = link_.turned_away();
  flight_.report(LogTopic::seal, [&] {
    return fmt::format("{} was refused: {} ({} such greetings since the last report)\n", last.from.to_string(),
                       seal::to_string(last.why, seal::Teller::refuser), last.number - turned_away_seen_);
  });
  turned_away_seen_ = last.number;
  turned_away_at_ = now + kTurnedAwayEvery;
}

bool Transports::expire(base::Instant now) {
  if (now < link_.next_deadline() || base::rare("engine: timers wait for the next pass")) return false;
  link_.expire(now);
  return true;
}

bool Transports::emit(std::size_t trains_max, base::Instant now) {
  std::size_t bytes = 0;
  const std::uint32_t datagrams_max = base::rare("engine: trains of one datagram") ? 1 : path_->train_datagrams_max();
  for (std::size_t trains = 0; trains < trains_max; ++trains) {
    if (bytes >= kBytesInPass) {
      is_emit_cut_short_ = true;
      break;
    }
    if (!link_.next_train(now, path_->train_bytes_max(), datagrams_max, train_)) {
      is_emit_cut_short_ = false;
      return trains != 0;
    }
    const path::Train train{.to = train_.to,
                            .pieces = std::span<const iovec>(train_.pieces, train_.piece_count),
                            .datagram_size = train_.datagram_size};
    bytes += train_.bytes;
    const bool is_taken = path_->send({&train, 1}, now) == 1;
    flight_.sent(train_, is_taken, now);
    if (!is_taken) [[unlikely]] {
      ++trains_not_taken_;
      link_.take_back(train_, now);
      is_emit_cut_short_ = false;  // Link::take_back() has set a timer for the next attempt
      break;
    }
  }
  return true;
}

base::Instant Transports::next_deadline(base::Instant now) const {
  if (is_emit_cut_short_) return now;
  const base::Instant of_shm = shm_ ? shm_->next_deadline() : base::kNever;
  return std::min({link_.next_deadline(), path_->next_deadline(), flight_.next_deadline(), of_shm});
}

std::size_t Transports::take_leave(base::Instant now) {
  if (shm_) shm_->take_leave();
  const std::size_t unheard = link_.take_leave(now);
  emit(kTrainsInPass, now);
  return unheard;
}

void Transports::farewell(base::Duration ack_delay, base::Instant now) {
  if (shm_) shm_->tell_all();
  link_.expire(now + ack_delay);
  emit(kTrainsInPass, now);
  link_.disconnect_all(now);
  const std::uint64_t refused_before = trains_not_taken_;
  while (emit(kTrainsInPass, now) && trains_not_taken_ == refused_before) {
  }
}

}  // namespace fairlead::transport
