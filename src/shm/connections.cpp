#include "shm/connections.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "base/barrier.hpp"
#include "base/event_descriptor.hpp"
#include "shm/greeting.hpp"

namespace fairlead::shm {
namespace {

constexpr std::uint64_t kAlarm = ~1ULL;

std::uint64_t name_of(std::uint32_t slot, std::uint32_t generation) {
  return std::uint64_t{generation} << 32 | slot;
}

}  // namespace

Result<std::unique_ptr<Connections>> Connections::open(const base::SocketAddress& own, std::uint64_t epoch,
                                                       const ConnectionOptions& options) {
  std::unique_ptr<Connections> connections(new Connections(own, epoch, options));
  connections->has_barriers_ = base::register_for_barriers();
  Listener::sweep(options.directory, connections->users_);
  auto doorbell = Doorbell::create();
  if (!doorbell) return std::unexpected(std::move(doorbell.error()));
  auto alarm = base::open_event_descriptor("peers on this host", EFD_NONBLOCK);
  if (!alarm) return std::unexpected(std::move(alarm.error()));
  connections->watch_.emplace(connections->peers_, std::move(*doorbell), std::move(*alarm), connections->counters_);
  connections->waited_for_.open();
  const int epoll_error = errno;
  if (options.arena_bytes > options.arena_head_bytes) {
    // Without an arena, everything goes through the rings.
    if (auto arena = Arena::create(options.arena_head_bytes, options.arena_bytes)) {
      const bool has_traced = options.has_traced && options.identity_bytes > 0;
      connections->published_ = std::make_shared<PublishedMemory>(
          std::move(*arena), options.huge_max, has_traced ? TracedMemory::create(options.arena_bytes) : nullptr);
    }
  }
  if (connections->published_ && options.identity_bytes > 0) {
    if (auto identity = Identity::create(options.identity_bytes)) connections->identity_ = std::move(*identity);
  }
  auto listener = Listener::open(own, {options.directory, options.admits_all}, connections->users_);
  if (!listener) return std::unexpected(std::move(listener.error()));
  connections->listener_ = std::move(*listener);
  if (!connections->waited_for_.is_open() ||
      !connections->waited_for_.add(connections->listener_.descriptor(), kListener) ||
      !connections->waited_for_.add(connections->watch_->alarm_descriptor(), kAlarm)) {
    const int number = connections->waited_for_.is_open() ? errno : epoll_error;
    return std::unexpected(Error{Status::system, number,
                                 fmt::format("cannot wait for peers on this host: {}: raise the limits of open files "
                                             "(ulimit -n) and fs.epoll.max_user_watches",
                                             std::strerror(number))});
  }
  return connections;
}

/// Returns kNone if no slot or no memory is left.
std::uint32_t Connections::make_peer(Socket socket, base::Instant now) try {
  const std::uint32_t slot = peers_.acquire();
  if (slot == kNone || !waited_for_.add(socket.descriptor(), name_of(slot, peers_[slot].generation))) return kNone;
  peers_[slot].socket = std::move(socket);
  peers_[slot].since = now;
  return slot;
} catch (const std::bad_alloc&) {
  return kNone;
}

// Handshake ----------------------------------------------------------------------------------------------------------

void Connections::attend(base::Instant now) {
  if (now >= expire_at_) expire(now);
  if (now >= look_at_) look_at_everybody(now);
  std::array<std::uint64_t, PollSet::kAtOnce> room;
  for (const std::uint64_t name : waited_for_.ready(room)) {
    if (!has_room_for_events()) break;
    if (name == kListener) {
      accept_all(now);
      continue;
    }
    const auto slot = static_cast<std::uint32_t>(name);
    if (name != kAlarm && slot < peers_.size() && peers_[slot].generation == name >> 32) serve(slot);
  }
}

// Handles input from a peer's socket: its greeting, its answer, or its end.
void Connections::serve(std::uint32_t slot) try { read_letter(slot); } catch (const std::bad_alloc&) {
  drop(slot);
}

void Connections::read_letter(std::uint32_t slot) {
  Connection& peer = peers_[slot];
  std::array<std::byte, sizeof(Greeting) + 1> bytes;
  auto letter = peer.socket.receive(bytes);
  if (!letter) return;
  const auto told = std::span<const std::byte>(bytes).first(letter->is_strange ? 0 : letter->bytes);
  switch (peer.state) {
    case Connection::State::answering:
      return take_greeting(slot, std::move(*letter), told);
    case Connection::State::claiming:
    case Connection::State::vouched:
      return close(slot);  // a peer must not send anything before our answer, or it is gone
    case Connection::State::asking:
      return take_answer(slot, *letter, told);
    case Connection::State::open:
      if (Socket::is_nudge(told)) return watch_->rouse();  // passes the nudge to the sleeper
      if (Socket::is(Socket::Parting::asks, told))
        return events_.push({ConnectionEvent::Kind::asked_to_part, slot, peer.address, {}});
      if (Socket::is(Socket::Parting::is_done, told))
        return events_.push({ConnectionEvent::Kind::done, slot, peer.address, {}});
      if (letter->bytes == 0) {
        const End by = peer.end_by_peer();
        return end(slot, by == End::parted ? kParted : "its process has closed it, or is gone", by);
      }
      return end(slot, "it sent an unexpected message");
    case Connection::State::ended:
    case Connection::State::closed:
      return;
  }
}

// End of a connection ------------------------------------------------------------------------------------------------

void Connections::decline(std::uint32_t slot, std::string_view reason) {
  events_.push({ConnectionEvent::Kind::declined, slot, peers_[slot].address, reason});
  close(slot);
}

/// Drops a peer for lack of memory. One that is not open yet may ask again.
void Connections::drop(std::uint32_t slot) {
  ++counters_.declined_memory;
  constexpr std::string_view kReason = "there was no memory for it";
  if (peers_[slot].state == Connection::State::asking) return decline(slot, kReason);
  if (peers_[slot].state == Connection::State::open) return end(slot, kReason);
  close(slot);
}

void Connections::end(std::uint32_t slot, std::string_view reason, End by) {
  Connection& peer = peers_[slot];
  if (peer.state != Connection::State::open) return;
  ++counters_.ended;
  peer.state = Connection::State::ended;
  if (by == End::here) peer.say_farewell(Farewell::cut);
  if (by == End::parted) peer.say_farewell(Farewell::parted);
  close_socket(peer);  // tells the other side, too
  events_.push({ConnectionEvent::Kind::ended, slot, peer.address, reason, by});
}

// Also tells peers that are not open here yet: the other side may consider the connection open already.
void Connections::take_leave() {
  is_leaving_ = true;
  waited_for_.watch(listener_.descriptor(), kListener, false);
  for (std::uint32_t slot = 0; slot < peers_.size(); ++slot) peers_[slot].say_farewell(Farewell::leaving);
}

void Connections::put_out(const SectionReader& reader) {
  constexpr std::string_view kReason = "it did not leave in time what was withdrawn here: is it stopped?";
  if (read_sections_.has_left(reader)) return;
  ++counters_.put_out;
  if (peers_[reader.slot].state == Connection::State::asking) return decline(reader.slot, kReason);
  end(reader.slot, kReason);
}

void Connections::refuse(std::uint32_t slot, std::string_view reason) {
  if (peers_[slot].state == Connection::State::open) ++counters_.refused_record;
  end(slot, reason);
}

void Connections::forget(std::uint32_t slot) {
  watch_->forget(slot);
  if (PairSide* const own = peers_[slot].own) Tickets::take_back_all(own->tickets);  // the peer may live on
  close(slot);
}

void Connections::close(std::uint32_t slot) {
  close_socket(peers_[slot]);
  peers_.release(slot);
}

// The descriptor may close slowly; nothing that it still delivers concerns us.
void Connections::close_socket(Connection& peer) const {
  if (peer.socket.is_open()) waited_for_.remove(peer.socket.descriptor());
  peer.socket = Socket();
}

}  // namespace fairlead::shm
