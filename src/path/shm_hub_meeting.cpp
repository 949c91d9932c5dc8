// How two engines of a host meet: one connects to the socket of the other's address and greets, the other answers
// (docs/shm.md).

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "path/shm_hub.hpp"

namespace fairlead::path {

/// To whom memory is shown: what of it, and where we are.
void ShmHub::introduce(ShmGreeting& greeting) const {
  greeting.arena_bytes = shown_->arena.bytes();
  if (!identity_) return;
  greeting.identity = identity_->address();
  std::ranges::copy(identity_->nonce(), greeting.nonce);
}

void ShmHub::adopt_arena(ShmPeer& peer, int file, const ShmGreeting& greeting) {
  const std::uint64_t bytes = greeting.arena_bytes;
  if (bytes == 0 || !shown_ || !peer.socket.is_own()) return;
  auto arena = ShmArena::view(file, bytes);
  if (!arena || bytes < options_.arena_head_bytes) {
    ++counters_.arenas_refused;
    return;
  }
  peer.arena = std::make_shared<ShmMemory>(std::move(*arena));
  peer.arena_bytes = bytes;
  ++counters_.arenas_seen;
  if (!identity_) return;
  peer.process = ForeignMemory::probe(peer.socket.credentials().process, greeting.identity,
                                      {greeting.nonce[0], greeting.nonce[1]});
  ++counters_.processes[static_cast<std::size_t>(peer.process.denial())];
}

// Whoever admits strangers has to make sure that they are who they say: the socket of that name belongs to the same
// process.
bool ShmHub::is_at(const ShmSocket& socket, const base::SocketAddress& claimed) {
  if (!options_.admits_all) return true;
  const auto name = ShmName::of(claimed, options_.directory);
  if (!name) return false;
  const auto back = ShmSocket::connect(*name, users_);
  if (!back) return false;
  const ShmCredentials there = back->credentials(), here = socket.credentials();
  return there.user == here.user && there.process == here.process;
}

Result<std::uint32_t> ShmHub::ask(const base::SocketAddress& address) {
  const auto name = ShmName::of(address, options_.directory);
  if (!name) return std::unexpected(name.error());
  auto socket = ShmSocket::connect(*name, users_);
  if (!socket) return std::unexpected(std::move(socket.error()));
  if (!is_admitted(*socket)) {
    ++counters_.declined_user;
    return std::unexpected(Error{Status::not_permitted, 0,
                                 fmt::format("{} {}", address.to_string(), users_.reason(socket->credentials()))});
  }
  ShmGreeting greeting{.ring_bytes = options_.ring_bytes,
                       .ip = own_.ip,
                       .scope = own_.scope,
                       .port = own_.port,
                       .has_barriers = has_barriers_,
                       .epoch = epoch_};
  auto memory = ShmMemory::create(pair_layout());
  if (!memory) return std::unexpected(std::move(memory.error()));
  if (::getentropy(greeting.secrets, sizeof greeting.secrets) != 0) {
    return std::unexpected(Error{Status::system, errno, "no random bits for shared memory"});
  }
  const std::uint32_t slot = make_peer(std::move(*socket));
  if (slot == kNone) {
    ++counters_.declined_full;
    return std::unexpected(Error{Status::no_memory, 0,
                                 fmt::format("more than {} peers on this host: raise FAIRLEAD_SHM_PEERS_MAX or the "
                                             "limit of open files",
                                             options_.peers_max)});
  }
  ShmPeer& peer = peers_[slot];
  new (memory->head()) ShmPairPage;
  peer.memory = std::move(*memory);
  peer.has_asked = true;
  peer.state = ShmPeer::State::asking;
  std::ranges::copy(greeting.secrets, peer.secrets);
  greeting.bell_bit = slot;
  peers_.name(slot, address);
  const bool shows = shows_to(peer.socket);
  if (shows) introduce(greeting);
  const std::array<int, 3> descriptors{peer.memory.descriptor(), watch_->bell().memory_descriptor(),
                                       shows ? shown_->arena.descriptor() : -1};
  if (!peer.socket.send(std::as_bytes(std::span(&greeting, 1)), std::span(descriptors).first(shows ? 3 : 2)))
    decline(slot, "its socket took no greeting");
  return slot;
}

namespace {

std::optional<ShmGreeting> read_greeting(std::span<const std::byte> bytes) {
  ShmGreeting greeting;
  if (bytes.size() != sizeof greeting) return std::nullopt;
  __builtin_memcpy(&greeting, bytes.data(), sizeof greeting);
  if (!greeting.is_ours() || greeting.bell_bit >= ShmBellPage::kBits) return std::nullopt;
  return greeting;
}

bool is_ring_size(std::uint32_t bytes) {
  return bytes >= 64 * 1024 && bytes <= 64 * 1024 * 1024 && (bytes & (bytes - 1)) == 0;
}

}  // namespace

void ShmHub::take_greeting(std::uint32_t slot, const ShmLetter& letter, std::span<const std::byte> bytes) {
  ShmPeer& peer = peers_[slot];
  const auto greeting = read_greeting(bytes);
  // A connection without a greeting only wanted to know whether we are there.
  if (bytes.empty() && !letter.is_strange) return close(slot);
  if (!greeting || !is_ring_size(greeting->ring_bytes) || greeting->address() == own_ ||
      !is_at(peer.socket, greeting->address())) {
    ++counters_.declined_greeting;
    return close(slot);
  }
  auto memory = ShmMemory::adopt(letter.descriptors[0].get(), {4096, greeting->ring_bytes, 2});
  auto bell = ShmMemory::adopt(letter.descriptors[1].get(), kShmBellLayout);
  if (!memory || !bell) {
    ++counters_.declined_greeting;
    return close(slot);
  }
  if (const std::uint32_t known = find(greeting->address()); known != kNone && !gives_way(known, *greeting))
    return close(slot);
  peer.memory = std::move(*memory);
  peer.bell = ShmBell(std::move(*bell));
  peer.bell_bit = greeting->bell_bit;
  peers_.name(slot, greeting->address());
  peer.epoch = greeting->epoch;
  peer.needs_fence = !has_barriers_ || greeting->has_barriers == 0;
  std::ranges::copy(greeting->secrets, peer.secrets);
  adopt_arena(peer, letter.descriptors[2].get(), *greeting);
  const bool shows = shows_to(peer.socket);
  ShmGreeting answer{.ring_bytes = greeting->ring_bytes,
                     .ip = own_.ip,
                     .scope = own_.scope,
                     .port = own_.port,
                     .has_barriers = has_barriers_,
                     .epoch = epoch_,
                     .bell_bit = slot};
  if (shows) introduce(answer);
  const std::array<int, 2> descriptors{watch_->bell().memory_descriptor(), shows ? shown_->arena.descriptor() : -1};
  if (!peer.socket.send(std::as_bytes(std::span(&answer, 1)), std::span(descriptors).first(shows ? 2 : 1)))
    return close(slot);
  become_open(slot);
}

void ShmHub::take_answer(std::uint32_t slot, const ShmLetter& letter, std::span<const std::byte> bytes) {
  ShmPeer& peer = peers_[slot];
  const auto answer = read_greeting(bytes);
  if (!answer) return decline(slot, bytes.empty() ? "it admits only its own user, or is full" : "it is no engine");
  auto bell = ShmMemory::adopt(letter.descriptors[0].get(), kShmBellLayout);
  if (!bell || answer->address() != peer.address) return decline(slot, "its answer makes no sense");
  peer.bell = ShmBell(std::move(*bell));
  peer.bell_bit = answer->bell_bit;
  peer.epoch = answer->epoch;
  peer.needs_fence = !has_barriers_ || answer->has_barriers == 0;
  adopt_arena(peer, letter.descriptors[1].get(), *answer);
  become_open(slot);
}

void ShmHub::become_open(std::uint32_t slot) {
  ShmPeer& peer = peers_[slot];
  auto& page = *std::launder(reinterpret_cast<ShmPairPage*>(peer.memory.head()));
  const std::uint32_t side = peer.has_asked ? 0 : 1;
  peer.own = &page.sides[side];
  peer.other = &page.sides[1 - side];
  peer.own->sees_arena.store(peer.arena != nullptr ? 1 : 0, std::memory_order_relaxed);
  const auto lines = static_cast<std::uint32_t>((peer.memory.ring(1) - peer.memory.ring(0)) / 2 / kRingLine);
  peer.writer = RingWriter({peer.memory.ring(side), lines, peer.secrets[side]}, peer.other->passed);
  peer.reader = RingReader({peer.memory.ring(1 - side), lines, peer.secrets[1 - side]}, peer.own->passed);
  peer.memory.close_descriptor();
  peer.state = ShmPeer::State::open;
  ++counters_.opened;
  events_.push_back({ShmEvent::Kind::opened, slot, peer.address, {}});
  watch_->begin(slot);
}

// One pair for two engines. When both ask at once, the one that the lower address asked for stands.
bool ShmHub::gives_way(std::uint32_t slot, const ShmGreeting& greeting) {
  const ShmPeer& known = peers_[slot];
  if (known.state == ShmPeer::State::asking) {
    if (own_ < greeting.address()) return false;
    close(slot);
    return true;
  }
  if (known.state == ShmPeer::State::open && known.epoch == greeting.epoch) return false;
  end(slot, "it has restarted");
  return true;
}

}  // namespace fairlead::path
