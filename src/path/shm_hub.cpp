#include "path/shm_hub.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "base/barrier.hpp"
#include "path/shm_greeting.hpp"

namespace fairlead::path {
namespace {

constexpr std::uint64_t kListener = ~0ULL;
constexpr std::uint64_t kBell = ~1ULL;
constexpr int kServedAtOnce = 32;

std::uint64_t name_of(std::uint32_t slot, std::uint32_t generation) {
  return std::uint64_t{generation} << 32 | slot;
}

}  // namespace

Result<std::unique_ptr<ShmHub>> ShmHub::open(const base::SocketAddress& own, std::uint64_t epoch,
                                             const ShmOptions& options) {
  std::unique_ptr<ShmHub> hub(new ShmHub(own, epoch, options));
  hub->has_barriers_ = base::register_for_barriers();
  sweep_shm_names(options.directory);
  auto bell = ShmBell::create();
  if (!bell) return std::unexpected(std::move(bell.error()));
  hub->bell_ = std::move(*bell);
  hub->epoll_ = base::FileDescriptor(::epoll_create1(EPOLL_CLOEXEC));
  if (options.arena_bytes > options.arena_head_bytes) {
    // Without it everything goes through the rings.
    if (auto arena = ShmArena::create(options.arena_head_bytes, options.arena_bytes))
      hub->shown_ = std::make_shared<ShmShown>(std::move(*arena), options.huge_max);
  }
  if (hub->shown_ && options.identity_bytes > 0) {
    if (auto identity = ShmIdentity::create(options.identity_bytes)) hub->identity_ = std::move(*identity);
  }
  auto listener = ShmSocket::listen(own, options.directory);
  if (!listener) return std::unexpected(std::move(listener.error()));
  hub->listener_ = std::move(*listener);
  if (!hub->register_socket(hub->listener_.descriptor(), kListener) ||
      !hub->register_socket(hub->bell_.event_descriptor(), kBell)) {
    return std::unexpected(
        Error{Status::system, errno, "cannot wait for peers on this host: raise the limit of open files"});
  }
  return hub;
}

ShmHub::~ShmHub() {
  if (listener_.is_open()) remove_shm_name(own_, options_.directory);
}

bool ShmHub::register_socket(int descriptor, std::uint64_t name) const {
  epoll_event event{.events = EPOLLIN | EPOLLRDHUP, .data = {.u64 = name}};
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

std::uint32_t ShmHub::find(const base::SocketAddress& address) const {
  const auto found = by_address_.find(address);
  return found == by_address_.end() ? kNone : found->second;
}

std::uint32_t ShmHub::make_peer(ShmSocket socket) {
  const auto unused =
      std::ranges::find_if(peers_, [](const auto& peer) { return peer->state == ShmPeer::State::closed; });
  const auto slot = static_cast<std::uint32_t>(unused - peers_.begin());
  if (slot >= std::min(options_.peers_max, ShmBellPage::kBits)) return kNone;
  if (unused == peers_.end()) {
    peers_.push_back(std::make_unique<ShmPeer>());
    last_traffic_.push_back(0);
  }
  ShmPeer& peer = *peers_[slot];
  peer.socket = std::move(socket);
  if (!register_socket(peer.socket.descriptor(), name_of(slot, peer.generation))) {
    peer.socket = ShmSocket();
    return kNone;
  }
  return slot;
}

bool ShmHub::is_admitted(const ShmSocket& socket) const {
  return options_.admits_all || socket.credentials().user == ::geteuid();
}

// Memory is shown only to whom our own user could read and write it by other means.
bool ShmHub::shows_to(const ShmSocket& socket) const {
  return shown_ && socket.credentials().user == ::geteuid();
}

/// To whom memory is shown: what of it, and where we are.
void ShmHub::introduce(ShmGreeting& greeting) const {
  greeting.arena_bytes = shown_->arena.bytes();
  if (!identity_) return;
  greeting.identity = identity_->address();
  std::ranges::copy(identity_->nonce(), greeting.nonce);
}

void ShmHub::adopt_arena(ShmPeer& peer, base::FileDescriptor file, const ShmGreeting& greeting) {
  const std::uint64_t bytes = greeting.arena_bytes;
  if (bytes == 0 || !shown_) return;
  auto arena = ShmArena::view(std::move(file), bytes);
  if (!arena || bytes < options_.arena_head_bytes) {
    ++counters_.arenas_refused;
    return;
  }
  peer.arena = std::make_shared<ShmMemory>(std::move(*arena));
  peer.arena_bytes = bytes;
  ++counters_.arenas_seen;
  if (!identity_ || peer.socket.credentials().user != ::geteuid()) return;
  peer.process = ForeignMemory::probe(peer.socket.credentials().process, greeting.identity,
                                      {greeting.nonce[0], greeting.nonce[1]});
  ++counters_.processes[static_cast<std::size_t>(peer.process.denial())];
}

// Whoever admits strangers has to make sure that they are who they say: the socket of that name belongs to the same
// process.
bool ShmHub::is_at(const ShmSocket& socket, const base::SocketAddress& claimed) const {
  if (!options_.admits_all) return true;
  const auto back = ShmSocket::connect(claimed, options_.directory);
  if (!back) return false;
  const ShmCredentials there = back->credentials(), here = socket.credentials();
  return there.user == here.user && there.process == here.process;
}

// Meeting -------------------------------------------------------------------------------------------------------------

void ShmHub::attend() {
  std::array<epoll_event, kServedAtOnce> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), kServedAtOnce, 0);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t name = events[static_cast<std::size_t>(i)].data.u64;
    if (name == kListener) {
      accept_all();
      continue;
    }
    const auto slot = static_cast<std::uint32_t>(name);
    if (name != kBell && slot < peers_.size() && peers_[slot]->generation == name >> 32) serve(slot);
  }
}

std::optional<ShmEvent> ShmHub::next_event() {
  if (events_.empty()) return std::nullopt;
  ShmEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

void ShmHub::accept_all() {
  for (int i = 0; i < kServedAtOnce; ++i) {
    auto socket = listener_.accept();
    if (!socket) return;
    if (!is_admitted(*socket)) {
      ++counters_.declined_user;
      continue;
    }
    const std::uint32_t slot = make_peer(std::move(*socket));
    if (slot == kNone) {
      ++counters_.declined_full;
      continue;
    }
    peers_[slot]->state = ShmPeer::State::answering;
    serve(slot);  // most have greeted at once
  }
}

Result<std::uint32_t> ShmHub::ask(const base::SocketAddress& address) {
  auto socket = ShmSocket::connect(address, options_.directory);
  if (!socket) return std::unexpected(std::move(socket.error()));
  if (!is_admitted(*socket)) {
    ++counters_.declined_user;
    return std::unexpected(Error{Status::not_permitted, 0,
                                 fmt::format("{} belongs to user {}, we are {}: run both as one user, or set "
                                             "FAIRLEAD_SHM_USERS=all for both",
                                             address.to_string(), socket->credentials().user, ::geteuid())});
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
  ShmPeer& peer = *peers_[slot];
  new (memory->head()) ShmPairPage;
  peer.memory = std::move(*memory);
  peer.address = address;
  peer.has_asked = true;
  peer.state = ShmPeer::State::asking;
  std::ranges::copy(greeting.secrets, peer.secrets);
  greeting.bell_bit = slot;
  by_address_[address] = slot;
  const bool shows = shows_to(peer.socket);
  if (shows) introduce(greeting);
  const std::array<int, 4> descriptors{peer.memory.descriptor(), bell_.memory_descriptor(), bell_.event_descriptor(),
                                       shows ? shown_->arena.descriptor() : -1};
  if (!peer.socket.send(std::as_bytes(std::span(&greeting, 1)), std::span(descriptors).first(shows ? 4 : 3)))
    decline(slot, "its socket took no greeting");
  return slot;
}

// Something came over the socket of a peer: its greeting, its answer, or its end.
void ShmHub::serve(std::uint32_t slot) {
  ShmPeer& peer = *peers_[slot];
  std::array<std::byte, sizeof(ShmGreeting) + 1> bytes;
  auto letter = peer.socket.receive(bytes);
  if (!letter) return;
  const auto told = std::span<const std::byte>(bytes).first(letter->bytes);
  switch (peer.state) {
    case ShmPeer::State::answering:
      return take_greeting(slot, *letter, told);
    case ShmPeer::State::asking:
      return take_answer(slot, *letter, told);
    case ShmPeer::State::open:
      return end(slot, letter->bytes == 0 ? "its process has closed it, or is gone" : "it says what nobody asked for");
    case ShmPeer::State::ended:
    case ShmPeer::State::closed:
      return;
  }
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

void ShmHub::take_greeting(std::uint32_t slot, ShmLetter& letter, std::span<const std::byte> bytes) {
  ShmPeer& peer = *peers_[slot];
  const auto greeting = read_greeting(bytes);
  // A connection without a greeting only wanted to know whether we are there.
  if (bytes.empty()) return close(slot);
  if (!greeting || !is_ring_size(greeting->ring_bytes) || greeting->address() == own_ ||
      !is_at(peer.socket, greeting->address())) {
    ++counters_.declined_greeting;
    return close(slot);
  }
  auto memory = ShmMemory::adopt(std::move(letter.descriptors[0]), {4096, greeting->ring_bytes, 2});
  auto bell = ShmMemory::adopt(std::move(letter.descriptors[1]), kShmBellLayout);
  if (!memory || !bell || !letter.descriptors[2].is_open()) {
    ++counters_.declined_greeting;
    return close(slot);
  }
  if (const std::uint32_t known = find(greeting->address()); known != kNone && !gives_way(known, *greeting))
    return close(slot);
  peer.memory = std::move(*memory);
  peer.bell = ShmBell(std::move(*bell), std::move(letter.descriptors[2]));
  peer.bell_bit = greeting->bell_bit;
  peer.address = greeting->address();
  peer.epoch = greeting->epoch;
  peer.needs_fence = !has_barriers_ || greeting->has_barriers == 0;
  std::ranges::copy(greeting->secrets, peer.secrets);
  adopt_arena(peer, std::move(letter.descriptors[3]), *greeting);
  const bool shows = shows_to(peer.socket);
  ShmGreeting answer{.ring_bytes = greeting->ring_bytes,
                     .ip = own_.ip,
                     .scope = own_.scope,
                     .port = own_.port,
                     .has_barriers = has_barriers_,
                     .epoch = epoch_,
                     .bell_bit = slot};
  if (shows) introduce(answer);
  const std::array<int, 3> descriptors{bell_.memory_descriptor(), bell_.event_descriptor(),
                                       shows ? shown_->arena.descriptor() : -1};
  if (!peer.socket.send(std::as_bytes(std::span(&answer, 1)), std::span(descriptors).first(shows ? 3 : 2)))
    return close(slot);
  become_open(slot);
}

void ShmHub::take_answer(std::uint32_t slot, ShmLetter& letter, std::span<const std::byte> bytes) {
  ShmPeer& peer = *peers_[slot];
  const auto answer = read_greeting(bytes);
  if (!answer) return decline(slot, bytes.empty() ? "it admits only its own user, or is full" : "it is no engine");
  auto bell = ShmMemory::adopt(std::move(letter.descriptors[0]), kShmBellLayout);
  if (!bell || !letter.descriptors[1].is_open() || answer->address() != peer.address)
    return decline(slot, "its answer makes no sense");
  peer.bell = ShmBell(std::move(*bell), std::move(letter.descriptors[1]));
  peer.bell_bit = answer->bell_bit;
  peer.epoch = answer->epoch;
  peer.needs_fence = !has_barriers_ || answer->has_barriers == 0;
  adopt_arena(peer, std::move(letter.descriptors[2]), *answer);
  become_open(slot);
}

void ShmHub::become_open(std::uint32_t slot) {
  ShmPeer& peer = *peers_[slot];
  auto& page = *std::launder(reinterpret_cast<ShmPairPage*>(peer.memory.head()));
  const std::uint32_t side = peer.has_asked ? 0 : 1;
  peer.own = &page.sides[side];
  peer.other = &page.sides[1 - side];
  peer.own->sees_arena.store(peer.arena != nullptr ? 1 : 0, std::memory_order_relaxed);
  const auto lines = static_cast<std::uint32_t>((peer.memory.ring(1) - peer.memory.ring(0)) / 2 / kRingLine);
  peer.writer = RingWriter({peer.memory.ring(side), lines, peer.secrets[side]}, peer.other->passed);
  peer.reader = RingReader({peer.memory.ring(1 - side), lines, peer.secrets[1 - side]}, peer.own->passed);
  peer.memory.close_descriptor();
  peer.bell.close_memory_descriptor();
  peer.state = ShmPeer::State::open;
  by_address_[peer.address] = slot;
  ++counters_.opened;
  events_.push_back({ShmEvent::Kind::opened, slot, peer.address, {}});
  bell_.ring(slot);  // it may have written already
}

// One pair for two engines. When both ask at once, the one that the lower address asked for stands.
bool ShmHub::gives_way(std::uint32_t slot, const ShmGreeting& greeting) {
  const ShmPeer& known = *peers_[slot];
  if (known.state == ShmPeer::State::asking) {
    if (own_ < greeting.address()) return false;
    close(slot);
    return true;
  }
  if (known.state == ShmPeer::State::open && known.epoch == greeting.epoch) return false;
  end(slot, "it has restarted");
  return true;
}

// Parting -------------------------------------------------------------------------------------------------------------

void ShmHub::decline(std::uint32_t slot, std::string_view reason) {
  events_.push_back({ShmEvent::Kind::declined, slot, peers_[slot]->address, std::string(reason)});
  close(slot);
}

void ShmHub::end(std::uint32_t slot, std::string_view reason) {
  ShmPeer& peer = *peers_[slot];
  if (peer.state != ShmPeer::State::open) return;
  ++counters_.ended;
  peer.state = ShmPeer::State::ended;
  peer.end_reason = reason;
  peer.socket = ShmSocket();  // the other side learns it too
  events_.push_back({ShmEvent::Kind::ended, slot, peer.address, peer.end_reason});
}

void ShmHub::refuse(std::uint32_t slot, std::string_view reason) {
  if (peers_[slot]->state == ShmPeer::State::open) ++counters_.refused_record;
  end(slot, reason);
}

void ShmHub::forget(std::uint32_t slot) {
  for (std::uint32_t i = 0; i < watched_count_; ++i) {
    if (watched_[i] == slot) watched_[i] = watched_[--watched_count_];
  }
  close(slot);
}

void ShmHub::close(std::uint32_t slot) {
  ShmPeer& peer = *peers_[slot];
  const std::uint32_t generation = peer.generation + 1;
  const auto found = by_address_.find(peer.address);
  if (found != by_address_.end() && found->second == slot) by_address_.erase(found);
  peer = ShmPeer();
  peer.generation = generation == 0 ? 1 : generation;
  ++closings_;
}

// Looking -------------------------------------------------------------------------------------------------------------

void ShmHub::watch(std::uint32_t slot) {
  ShmPeer& peer = *peers_[slot];
  if (peer.is_watched()) return;
  std::uint32_t place = watched_count_;
  if (place == kWatchedMax) {
    place = 0;
    while (place < kWatchedMax && looks_ - last_traffic_[watched_[place]] < kBusyLooks) ++place;
    if (place == kWatchedMax) return;  // all are busy: this one goes on ringing
    unwatch(place);
  } else {
    ++watched_count_;
  }
  watched_[place] = slot;
  last_traffic_[slot] = looks_;
  peer.own->is_watching.store(1, std::memory_order_relaxed);
}

void ShmHub::unwatch(std::uint32_t place) {
  const std::uint32_t slot = watched_[place];
  peers_[slot]->own->is_watching.store(0, std::memory_order_seq_cst);
  base::barrier_everywhere();
  ++counters_.unwatched;
  ring_if_news(slot);
}

// So that those who have fallen quiet cost a pass nothing. One barrier for all of them.
void ShmHub::unwatch_idle() {
  std::array<std::uint32_t, kWatchedMax> idle;
  std::uint32_t idle_count = 0, kept = 0;
  for (std::uint32_t i = 0; i < watched_count_; ++i) {
    const std::uint32_t slot = watched_[i];
    if (looks_ - last_traffic_[slot] < kIdleLooks) {
      watched_[kept++] = slot;
    } else {
      idle[idle_count++] = slot;
      peers_[slot]->own->is_watching.store(0, std::memory_order_seq_cst);
    }
  }
  watched_count_ = kept;
  if (idle_count == 0) return;
  base::barrier_everywhere();
  counters_.unwatched += idle_count;
  for (std::uint32_t i = 0; i < idle_count; ++i) ring_if_news(idle[i]);
}

// To be looked at as if it had rung, if it has written or read meanwhile.
bool ShmHub::ring_if_news(std::uint32_t slot) {
  const ShmPeer& peer = *peers_[slot];
  if (!peer.reader.has_record() && !peer.writer.has_news()) return false;
  bell_.ring(slot);
  return true;
}

// Whoever has our greeting has the arena, though its answer may not have been read.
const ShmSide* ShmHub::visitor_of(const ShmPeer& peer) {
  if (is_audible(peer)) return peer.other;
  if (peer.state != ShmPeer::State::asking) return nullptr;
  return &std::launder(reinterpret_cast<const ShmPairPage*>(peer.memory.head()))->sides[1];
}

std::vector<ShmVisitor> ShmHub::visitors() const {
  base::barrier_everywhere();
  std::vector<ShmVisitor> inside;
  for (std::uint32_t slot = 0; slot < peers_.size(); ++slot) {
    const ShmPeer& peer = *peers_[slot];
    const ShmSide* visitor = visitor_of(peer);
    if (visitor == nullptr) continue;
    const std::uint64_t visit = visitor->visits.load(std::memory_order_seq_cst);
    if (visit % 2 != 0) inside.push_back({slot, peer.generation, visit});
  }
  return inside;
}

bool ShmHub::has_left(const ShmVisitor& visitor) const {
  const ShmPeer& peer = *peers_[visitor.slot];
  const ShmSide* side = peer.generation == visitor.generation ? visitor_of(peer) : nullptr;
  return side == nullptr || side->visits.load(std::memory_order_acquire) != visitor.visit;
}

bool ShmHub::is_held(std::uint64_t name) const noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return std::ranges::any_of(peers_, [&](const auto& peer) {
    const ShmSide* visitor = visitor_of(*peer);
    return visitor != nullptr && visitor->held.load(std::memory_order_acquire) == name;
  });
}

bool ShmHub::arm() {
  for (std::uint32_t i = 0; i < watched_count_; ++i)
    peers_[watched_[i]]->own->is_watching.store(0, std::memory_order_seq_cst);
  bell_.announce_sleep();
  if (watched_count_ > 0) base::barrier_everywhere();
  bool has_news = bell_.has_rung();
  for (std::uint32_t i = 0; i < watched_count_; ++i) has_news |= ring_if_news(watched_[i]);
  watched_count_ = 0;
  is_armed_ = true;
  ++counters_.sleeps;
  if (has_news) disarm();
  return !has_news;
}

void ShmHub::disarm() {
  if (!is_armed_) return;
  is_armed_ = false;
  bell_.end_sleep();
}

}  // namespace fairlead::path
