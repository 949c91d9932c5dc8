// The handshake between two engines of a host (docs/shm.md). One connects to the socket of the other's address and
// sends a greeting; the other answers.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "base/local_addresses.hpp"
#include "base/overcommit.hpp"
#include "shm/connections.hpp"
#include "shm/proof.hpp"

namespace fairlead::shm {
namespace {

// Abstract names belong to this network namespace. Whoever binds one, no engine elsewhere can have it.
bool may_be_at(const base::SocketAddress& address, const std::string& directory) {
  if (!directory.empty() || address.is_loopback()) return true;
  const auto local = base::local_addresses();
  return local && std::ranges::any_of(*local, [&](const base::SocketAddress& one) { return one.ip == address.ip; });
}

}  // namespace

/// Adds to the greeting what a peer of our user needs: the arena's size and our identity.
void Connections::introduce(Greeting& greeting) const {
  greeting.arena_bytes = published_->arena.bytes();
  if (!identity_) return;
  greeting.identity = identity_->address();
  if (published_->traced) {
    greeting.traced_bytes = published_->traced->bytes();
    greeting.traced_file = static_cast<std::uint32_t>(published_->traced->descriptor());
  }
  std::ranges::copy(identity_->nonce(), greeting.nonce);
}

void Connections::adopt_arena(Connection& peer, int file, const Greeting& greeting) {
  const std::uint64_t bytes = greeting.arena_bytes;
  if (bytes == 0 || !published_ || !peer.socket.is_own()) return;
  // The peer's arena may use at most as much address space as ours.
  const bool has_size = bytes >= options_.arena_head_bytes && bytes <= published_->arena.bytes();
  auto arena = has_size ? Arena::view(file, bytes) : std::unexpected(Error{});
  if (!arena) {
    ++counters_.arenas_refused;
    return;
  }
  peer.arena = std::make_shared<Memory>(std::move(*arena));
  peer.arena_bytes = bytes;
  ++counters_.arenas_seen;
  if (!identity_) return;
  const std::int32_t number = peer.socket.credentials().process;
  const auto process = greeting.traced_bytes == 0 ? base::FileDescriptor() : TracedMemory::open_process(number);
  peer.process = CrossMemory::probe(number, greeting.identity, {greeting.nonce[0], greeting.nonce[1]});
  ++counters_.processes[static_cast<std::size_t>(peer.process.denial())];
  if (process.is_open() && peer.process.is_reached()) adopt_traced(peer, process, greeting);
}

// The probe came after the process was opened, so it is the peer's. A wrong descriptor is only a wrong file.
void Connections::adopt_traced(Connection& peer, const base::FileDescriptor& process, const Greeting& greeting) {
  const std::uint64_t bytes = greeting.traced_bytes;
  auto traced = bytes <= published_->arena.bytes()
                    ? TracedMemory::fetch(process, static_cast<int>(greeting.traced_file), bytes)
                    : std::unexpected(Error{});
  if (!traced) {
    ++counters_.traced_refused;
    return;
  }
  peer.traced = std::move(*traced);
  peer.traced_bytes = bytes;
  ++counters_.traced_seen;
}

Greeting Connections::own_greeting(std::uint32_t slot, std::uint32_t ring_bytes) const {
  Greeting greeting{.ring_bytes = ring_bytes,
                    .ip = own_.ip,
                    .scope = own_.scope,
                    .port = own_.port,
                    .has_barriers = has_barriers_,
                    .epoch = epoch_,
                    .doorbell_bit = slot,
                    .user = ::geteuid()};
  if (publishes_to(peers_[slot].socket)) introduce(greeting);
  return greeting;
}

// Connecting side ----------------------------------------------------------------------------------------------------

Result<std::uint32_t> Connections::ask(const base::SocketAddress& address, base::Instant now,
                                       const std::optional<base::SipKey>& key) try {
  if (!has_room_for_events()) throw std::bad_alloc();
  return begin_asking(address, now, key);
} catch (const std::bad_alloc&) {
  return std::unexpected(Error{Status::no_memory, ENOMEM, {}});
}

Result<std::uint32_t> Connections::begin_asking(const base::SocketAddress& address, base::Instant now,
                                                const std::optional<base::SipKey>& key) {
  const auto name = Name::of(address, options_.directory);
  if (!name) return std::unexpected(name.error());
  auto socket = Socket::connect(*name, users_);
  if (!socket) return std::unexpected(std::move(socket.error()));
  if (auto checked = check_asked(*socket, address, key.has_value()); !checked)
    return std::unexpected(std::move(checked.error()));
  auto memory = Memory::create(pair_layout(), base::is_memory_strict());
  if (!memory) return std::unexpected(std::move(memory.error()));
  std::uint64_t secrets[2];
  if (::getentropy(secrets, sizeof secrets) != 0) {
    return std::unexpected(Error{Status::system, errno, "no random bits for shared memory"});
  }
  const std::uint32_t slot = make_peer(std::move(*socket), now);
  if (slot == kNone) {
    ++counters_.declined_full;
    return std::unexpected(Error{Status::no_memory, 0,
                                 fmt::format("more than {} peers on this host: raise FAIRLEAD_SHM_PEERS_MAX or the "
                                             "limit of open files",
                                             options_.peers_max)});
  }
  Connection& peer = peers_[slot];
  watch_->make_room(slot);
  peers_.name(slot, address);
  auto* const page = new (memory->head()) PairPage;
  peer.memory = std::move(*memory);
  peer.own = &page->sides[0];
  peer.has_asked = true;
  peer.state = Connection::State::asking;
  peer.greeting = own_greeting(slot, options_.ring_bytes);
  std::ranges::copy(secrets, peer.greeting.secrets);
  if (!peer.socket.is_own()) {
    peer.pair_key = key;
    peer.greeting.proof = proof_of_greeting(*key, peer.greeting);
  }
  const bool shows = publishes_to(peer.socket);
  peer.sees_ours = shows;
  expire_by(now + kAnswerWithin);
  const std::array<int, 3> descriptors{peer.memory.descriptor(), watch_->doorbell().memory_descriptor(),
                                       shows ? published_->arena.descriptor() : -1};
  if (!peer.socket.send(std::as_bytes(std::span(&peer.greeting, 1)), std::span(descriptors).first(shows ? 3 : 2)))
    decline(slot, "its socket took no greeting");
  return slot;
}

// Checks whether the process that listens at this address's name may get a greeting.
Result<> Connections::check_asked(const Socket& socket, const base::SocketAddress& address, bool has_key) {
  if (!options_.admits(socket)) {
    ++counters_.declined_user;
    return std::unexpected(Error{Status::not_permitted, 0,
                                 fmt::format("{} {}", address.to_string(), users_.reason(socket.credentials()))});
  }
  if (!may_be_at(address, options_.directory)) {
    ++counters_.declined_address;
    return std::unexpected(Error{Status::not_permitted, 0,
                                 fmt::format("user {} has bound the name of {}, which is no address of this host",
                                             socket.credentials().user, address.to_string())});
  }
  if (!socket.is_own() && !has_key) {
    return std::unexpected(Error{Status::again, 0,
                                 fmt::format("{} belongs to user {}: who it is will be known by a session over UDP",
                                             address.to_string(), socket.credentials().user)});
  }
  return {};
}

namespace {

std::optional<Greeting> read_greeting(std::span<const std::byte> bytes) {
  Greeting greeting;
  if (bytes.size() != sizeof greeting) return std::nullopt;
  __builtin_memcpy(&greeting, bytes.data(), sizeof greeting);
  if (!greeting.is_ours() || greeting.doorbell_bit >= DoorbellPage::kBits) return std::nullopt;
  return greeting;
}

bool is_ring_size(std::uint32_t bytes) {
  return bytes >= 64 * 1024 && bytes <= 64 * 1024 * 1024 && (bytes & (bytes - 1)) == 0;
}

}  // namespace

void Connections::take_answer(std::uint32_t slot, const Letter& letter, std::span<const std::byte> bytes) {
  Connection& peer = peers_[slot];
  const auto answer = read_greeting(bytes);
  if (!answer) {
    return decline(slot, letter.bytes == 0 ? "it admits only its own user, is full, or does not know us over UDP"
                                           : "it is not an engine of this version");
  }
  if (peer.pair_key && (answer->user != peer.socket.credentials().user ||
                        answer->proof != proof_of_answer(*peer.pair_key, *answer, peer.greeting))) {
    ++counters_.declined_proof;
    return decline(slot,
                   "the process that listens under its name cannot prove that it is the peer of the session over UDP");
  }
  auto doorbell = Memory::adopt(letter.descriptors[0].get(), kShmBellLayout);
  if (!doorbell || answer->address() != peer.address) return decline(slot, "its answer is invalid");
  take_over(peer, *answer, std::move(*doorbell));
  adopt_arena(peer, letter.descriptors[1].get(), *answer);
  become_open(slot, peer.greeting.secrets);
}

// Accepting side -----------------------------------------------------------------------------------------------------

void Connections::take_greeting(std::uint32_t slot, Letter letter, std::span<const std::byte> bytes) {
  Connection& peer = peers_[slot];
  const auto greeting = read_greeting(bytes);
  // A connection without a greeting only tests whether this engine exists.
  if (letter.bytes == 0 && !letter.is_strange) return close(slot);
  if (!greeting || !is_ring_size(greeting->ring_bytes) || greeting->address() == own_) {
    ++counters_.declined_greeting;
    return close(slot);
  }
  if (!may_be_at(greeting->address(), options_.directory)) {
    ++counters_.declined_address;
    return close(slot);
  }
  if (peer.socket.is_own()) return answer(slot, *greeting, letter, {});
  if (greeting->user != peer.socket.credentials().user) {
    ++counters_.declined_proof;
    return close(slot);
  }
  peer.state = Connection::State::claiming;
  peer.address = greeting->address();
  peer.claim = std::make_unique<Claim>(*greeting, std::move(letter));
  events_.push({ConnectionEvent::Kind::claimed, slot, peer.address, {}});
}

// A stranger that fails to prove itself with this key may succeed with that of a later session. attend() answers those
// that succeed: it reports an opened peer before anybody reads its ring.
void Connections::vouch(const base::SocketAddress& address, const base::SipKey& key) {
  for (std::uint32_t slot = 0; slot < peers_.size(); ++slot) {
    Connection& peer = peers_[slot];
    if (peer.state != Connection::State::claiming || peer.address != address ||
        peer.claim->greeting.proof != proof_of_greeting(key, peer.claim->greeting))
      continue;
    peer.state = Connection::State::vouched;
    peer.pair_key = key;
    expire_at_ = base::Instant{};
  }
}

void Connections::answer(std::uint32_t slot, const Greeting& greeting, const Letter& letter,
                         const std::optional<base::SipKey>& key) {
  Connection& peer = peers_[slot];
  if (is_leaving_) return close(slot);
  auto memory = Memory::adopt(letter.descriptors[0].get(), {4096, greeting.ring_bytes, 2});
  auto doorbell = Memory::adopt(letter.descriptors[1].get(), kShmBellLayout);
  if (!memory || !doorbell) {
    ++counters_.declined_greeting;
    return close(slot);
  }
  if (const std::uint32_t known = find(greeting.address()); known != kNone && !gives_way(known, greeting))
    return close(slot);
  watch_->make_room(slot);
  peer.memory = std::move(*memory);
  peers_.name(slot, greeting.address());
  take_over(peer, greeting, std::move(*doorbell));
  adopt_arena(peer, letter.descriptors[2].get(), greeting);
  Greeting answer = own_greeting(slot, greeting.ring_bytes);
  if (key) answer.proof = proof_of_answer(*key, answer, greeting);
  const bool shows = publishes_to(peer.socket);
  peer.sees_ours = shows;
  const std::array<int, 2> descriptors{watch_->doorbell().memory_descriptor(),
                                       shows ? published_->arena.descriptor() : -1};
  if (!peer.socket.send(std::as_bytes(std::span(&answer, 1)), std::span(descriptors).first(shows ? 2 : 1)))
    return close(slot);
  become_open(slot, greeting.secrets);
}

// Both sides ---------------------------------------------------------------------------------------------------------

void Connections::take_over(Connection& peer, const Greeting& theirs, Memory doorbell) const {
  peer.doorbell = Doorbell(std::move(doorbell));
  peer.doorbell_bit = theirs.doorbell_bit;
  peer.epoch = theirs.epoch;
  peer.needs_fence = !has_barriers_ || theirs.has_barriers == 0;
}

void Connections::become_open(std::uint32_t slot, const std::uint64_t (&secrets)[2]) {
  Connection& peer = peers_[slot];
  auto& page = *std::launder(reinterpret_cast<PairPage*>(peer.memory.head()));
  const std::uint32_t side = peer.has_asked ? 0 : 1;
  peer.own = &page.sides[side];
  peer.other = &page.sides[1 - side];
  peer.own->sees.store((peer.arena != nullptr ? sees::arena : 0) | (peer.traced_bytes != 0 ? sees::traced : 0),
                       std::memory_order_relaxed);
  const auto lines = static_cast<std::uint32_t>((peer.memory.ring(1) - peer.memory.ring(0)) / 2 / kRingLine);
  peer.writer = RingWriter({peer.memory.ring(side), lines, secrets[side]}, peer.other->passed);
  peer.reader = RingReader({peer.memory.ring(1 - side), lines, secrets[1 - side]}, peer.own->passed);
  peer.memory.close_descriptor();
  peer.state = Connection::State::open;
  if (!peer.socket.is_own()) look_at_ = base::Instant{};
  ++counters_.opened;
  events_.push({ConnectionEvent::Kind::opened, slot, peer.address, {}});
  watch_->begin(slot);
}

// Two engines share one connection. If both connect at once, the connection of the lower address stays.
bool Connections::gives_way(std::uint32_t slot, const Greeting& greeting) {
  const Connection& known = peers_[slot];
  if (known.state == Connection::State::asking) {
    if (own_ < greeting.address()) return false;
    close(slot);
    return true;
  }
  if (known.state == Connection::State::open && known.epoch == greeting.epoch) return false;
  end(slot, "it has restarted", End::peer_gone);
  return true;
}

}  // namespace fairlead::shm
