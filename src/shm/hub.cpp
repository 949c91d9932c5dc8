#include "shm/hub.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/barrier.hpp"
#include "base/event_descriptor.hpp"
#include "shm/greeting.hpp"

namespace fairlead::shm {
namespace {

constexpr std::uint64_t kAlarm = ~1ULL;
constexpr int kServedAtOnce = 32;

std::uint64_t name_of(std::uint32_t slot, std::uint32_t generation) {
  return std::uint64_t{generation} << 32 | slot;
}

}  // namespace

Result<std::unique_ptr<ShmHub>> ShmHub::open(const base::SocketAddress& own, std::uint64_t epoch,
                                             const ShmOptions& options) {
  std::unique_ptr<ShmHub> hub(new ShmHub(own, epoch, options));
  hub->has_barriers_ = base::register_for_barriers();
  ShmListener::sweep(options.directory, hub->users_);
  auto bell = ShmBell::create();
  if (!bell) return std::unexpected(std::move(bell.error()));
  auto alarm = base::open_event_descriptor("peers on this host", EFD_NONBLOCK);
  if (!alarm) return std::unexpected(std::move(alarm.error()));
  hub->watch_.emplace(hub->peers_, std::move(*bell), std::move(*alarm), hub->counters_);
  hub->epoll_ = base::FileDescriptor(::epoll_create1(EPOLL_CLOEXEC));
  const int epoll_error = errno;
  if (options.arena_bytes > options.arena_head_bytes) {
    // Without it everything goes through the rings.
    if (auto arena = ShmArena::create(options.arena_head_bytes, options.arena_bytes))
      hub->shown_ = std::make_shared<ShmShown>(std::move(*arena), options.huge_max);
  }
  if (hub->shown_ && options.identity_bytes > 0) {
    if (auto identity = ShmIdentity::create(options.identity_bytes)) hub->identity_ = std::move(*identity);
  }
  auto listener = ShmListener::open(own, {options.directory, options.admits_all}, hub->users_);
  if (!listener) return std::unexpected(std::move(listener.error()));
  hub->listener_ = std::move(*listener);
  if (!hub->epoll_.is_open() || !hub->register_socket(hub->listener_.descriptor(), kListener) ||
      !hub->register_socket(hub->watch_->alarm_descriptor(), kAlarm)) {
    const int number = hub->epoll_.is_open() ? errno : epoll_error;
    return std::unexpected(Error{Status::system, number,
                                 fmt::format("cannot wait for peers on this host: {}: raise the limits of open files "
                                             "(ulimit -n) and fs.epoll.max_user_watches",
                                             std::strerror(number))});
  }
  return hub;
}

bool ShmHub::register_socket(int descriptor, std::uint64_t name) const {
  epoll_event event{.events = EPOLLIN | EPOLLRDHUP, .data = {.u64 = name}};
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

std::uint32_t ShmHub::make_peer(ShmSocket socket, base::Instant now) {
  const std::uint32_t slot = peers_.acquire();
  if (slot == kNone || !register_socket(socket.descriptor(), name_of(slot, peers_[slot].generation))) return kNone;
  peers_[slot].socket = std::move(socket);
  peers_[slot].since = now;
  return slot;
}

// Meeting -------------------------------------------------------------------------------------------------------------

void ShmHub::attend(base::Instant now) {
  if (now >= expire_at_) expire(now);
  if (now >= look_at_) look_at_everybody(now);
  std::array<epoll_event, kServedAtOnce> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), kServedAtOnce, 0);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t name = events[static_cast<std::size_t>(i)].data.u64;
    if (name == kListener) {
      accept_all(now);
      continue;
    }
    const auto slot = static_cast<std::uint32_t>(name);
    if (name != kAlarm && slot < peers_.size() && peers_[slot].generation == name >> 32) serve(slot);
  }
}

std::optional<ShmEvent> ShmHub::next_event() {
  if (events_.empty()) return std::nullopt;
  ShmEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

// Something came over the socket of a peer: its greeting, its answer, or its end.
void ShmHub::serve(std::uint32_t slot) {
  ShmPeer& peer = peers_[slot];
  std::array<std::byte, sizeof(ShmGreeting) + 1> bytes;
  auto letter = peer.socket.receive(bytes);
  if (!letter) return;
  const auto told = std::span<const std::byte>(bytes).first(letter->is_strange ? 0 : letter->bytes);
  switch (peer.state) {
    case ShmPeer::State::answering:
      return take_greeting(slot, std::move(*letter), told);
    case ShmPeer::State::claiming:
    case ShmPeer::State::vouched:
      return close(slot);  // it has nothing to say before it is answered, or is gone
    case ShmPeer::State::asking:
      return take_answer(slot, *letter, told);
    case ShmPeer::State::open:
      if (ShmSocket::is_nudge(told)) return watch_->rouse();  // whom it was meant for
      return end(slot, letter->bytes == 0 ? "its process has closed it, or is gone" : "it says what nobody asked for");
    case ShmPeer::State::ended:
    case ShmPeer::State::closed:
      return;
  }
}

// Parting -------------------------------------------------------------------------------------------------------------

void ShmHub::decline(std::uint32_t slot, std::string_view reason) {
  events_.push_back({ShmEvent::Kind::declined, slot, peers_[slot].address, std::string(reason)});
  close(slot);
}

void ShmHub::end(std::uint32_t slot, std::string_view reason) {
  ShmPeer& peer = peers_[slot];
  if (peer.state != ShmPeer::State::open) return;
  ++counters_.ended;
  peer.state = ShmPeer::State::ended;
  peer.end_reason = reason;
  close_socket(peer);  // the other side learns it too
  events_.push_back({ShmEvent::Kind::ended, slot, peer.address, peer.end_reason});
}

void ShmHub::put_out(const ShmVisitor& visitor) {
  constexpr std::string_view kReason = "it did not leave in time what was withdrawn here: is it stopped?";
  if (has_left(visitor)) return;
  ++counters_.put_out;
  if (peers_[visitor.slot].state == ShmPeer::State::asking) return decline(visitor.slot, kReason);
  end(visitor.slot, kReason);
}

void ShmHub::refuse(std::uint32_t slot, std::string_view reason) {
  if (peers_[slot].state == ShmPeer::State::open) ++counters_.refused_record;
  end(slot, reason);
}

void ShmHub::forget(std::uint32_t slot) {
  watch_->forget(slot);
  close(slot);
}

void ShmHub::close(std::uint32_t slot) {
  close_socket(peers_[slot]);
  peers_.release(slot);
}

// It may take its time to close; nothing that happens there concerns us any more.
void ShmHub::close_socket(ShmPeer& peer) const {
  if (peer.socket.is_open()) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, peer.socket.descriptor(), nullptr);
  peer.socket = ShmSocket();
}

}  // namespace fairlead::shm
