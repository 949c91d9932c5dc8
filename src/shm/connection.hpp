#pragma once
// A connection to another engine of this host: two rings in shared memory, the peer's doorbell, and a socket that
// reports the peer's death. Connections owns them.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/sip_hash.hpp"
#include "base/socket_address.hpp"
#include "base/time.hpp"
#include "shm/cross_memory.hpp"
#include "shm/doorbell.hpp"
#include "shm/greeting.hpp"
#include "shm/memory.hpp"
#include "shm/ring.hpp"
#include "shm/socket.hpp"
#include "shm/tickets.hpp"
#include "shm/use.hpp"

namespace fairlead::shm {

/// Why one side closes the connection. A process that is killed says nothing.
enum class Farewell : std::uint32_t { none, leaving, cut, parted };

/// What one side publishes beside its ring. The other side can write here, too, so a side never reads back its own
/// values.
struct PairSide {
  alignas(128) std::atomic<std::uint64_t> passed{0};       // lines of the other side's ring that this side has consumed
  alignas(128) std::atomic<std::uint32_t> is_watching{0};  // it polls the rings by itself: nobody has to ring
  // Hazard pointer: what it uses in the other side's memory (shm/use.hpp); 0: nothing.
  alignas(128) std::atomic<std::uint64_t> at{0};
  std::atomic<std::uint32_t> sees{0};      // what it has mapped of the other side's memory
  std::atomic<std::uint32_t> farewell{0};  // a Farewell; set before the connection closes
  Tickets::Words tickets = {};             // tickets that it gave to the other side (tickets.hpp)
};
/// The first page of a pair's memory. Side 0 is the engine that connected, side 1 the one that accepted.
struct PairPage {
  PairSide sides[2];
};
static_assert(sizeof(PairPage) <= 4096);

/// What an unproven stranger has sent. Kept until the stranger proves its identity.
struct Claim {
  Greeting greeting;
  Letter letter;
};

/// Which side ended a connection.
enum class End : std::uint8_t {
  peer_gone,  // the kernel closed the peer's socket: its process has ended, or it closed the connection
  peer_left,  // as before, and the peer had announced that its engine ends
  peer_cut,   // the peer cut the connection, and lives on
  here,       // this side cut it
  parted,     // neither side has anything more for the other here; both live on
};

/// A record is written with the first two cache lines.
struct alignas(64) Connection {
  enum class State : std::uint8_t {
    closed,
    asking,     // we sent a greeting; the peer has not answered
    answering,  // the peer has connected; its greeting has not come
    claiming,   // a stranger has sent a greeting; its claim is not proven
    vouched,    // the claim is proven; an answer will be sent
    open,
    ended,  // the peer is gone or broke the protocol; records that it wrote before may still be read
  };
  const PairSide* other = nullptr;
  RingWriter writer;

  RingReader reader;
  std::uint32_t doorbell_bit = 0;  // the bit that we set in the peer's doorbell
  State state = State::closed;
  bool sees_ours = false;    // the peer received our arena
  bool has_asked = false;    // our side connected
  bool needs_fence = false;  // the kernel offers no expedited barrier that covers both processes
  bool is_watched = false;   // the value last written to own->is_watching
  Doorbell doorbell;         // the peer's

  std::uint32_t generation = 1;
  base::SocketAddress address;
  base::Instant since{};                 // start of the handshake
  std::unique_ptr<Claim> claim;          // of a stranger that has sent a greeting
  Greeting greeting;                     // ours, if our side connected
  std::optional<base::SipKey> pair_key;  // shared secret with a stranger
  std::uint64_t epoch = 0;
  Socket socket;
  Memory memory;
  PairSide* own = nullptr;  // written only, never read back
  Farewell said = Farewell::none;
  std::uint16_t turn = 0;     // number of our last use of the peer's memory; never read from own->at
  std::uint64_t left_at = 0;  // after closing: the exposure that the peer was using, until take_departed() reports it
  std::shared_ptr<Memory> arena;  // the peer's shared memory
  std::uint64_t arena_bytes = 0;
  Memory traced;  // the peer's memory that only those see who may trace it
  std::uint64_t traced_bytes = 0;
  CrossMemory process;  // access to the rest of the peer's memory, if the kernel permits it

  /// Announces why this side is about to close the connection. The first reason stays.
  void say_farewell(Farewell farewell) noexcept {
    if (own == nullptr || said != Farewell::none) return;
    said = farewell;
    own->farewell.store(std::to_underlying(farewell), std::memory_order_release);
  }
  /// Returns how the connection ends now that the peer's socket is closed. The peer may have written any value.
  End end_by_peer() const noexcept {
    const std::uint32_t word = other == nullptr ? 0 : other->farewell.load(std::memory_order_acquire);
    if (word == std::to_underlying(Farewell::leaving)) return End::peer_left;
    if (word == std::to_underlying(Farewell::parted)) return End::parted;
    return word == std::to_underlying(Farewell::cut) ? End::peer_cut : End::peer_gone;
  }

  /// enter() and leave() enclose each access to the peer's memory (onesided::RemoteMemory). An access that enters after
  /// the owner withdrew an object finds it withdrawn. The owner waits for accesses that began before (ReadSections).
  /// The store is a release: the owner may see it instead of the end of the previous use.
  void enter(Use use) noexcept {
    if (++turn == 0) ++turn;
    own->at.store(std::uint64_t{turn} << Use::kTurnShift | use.name(), std::memory_order_release);
    fence();
  }
  void leave() noexcept { own->at.store(0, std::memory_order_release); }
  /// Returns whether system calls may access so many bytes of the peer's memory. For a peer that polls its ring, a
  /// message is faster, so it has a limit of its own, `most_awake`. Any other peer would have to be woken for a
  /// message.
  bool may_call(std::uint64_t bytes, std::uint64_t most, std::uint64_t most_awake) const noexcept {
    const bool is_awake = other->is_watching.load(std::memory_order_relaxed) != 0;
    return process.is_reached() && bytes <= (is_awake ? most_awake : most);
  }

  /// Ensures that the peer looks at its ring after a record was published to it.
  void alert() noexcept {
    fence();
    if (other->is_watching.load(std::memory_order_relaxed) == 0) [[unlikely]]
      ring();
  }
  /// Rings the peer's doorbell: its next pass looks at our ring. Nudges the peer if it sleeps.
  void ring() noexcept {
    if (doorbell.ring(doorbell_bit)) [[unlikely]]
      socket.nudge();
  }
  // If both processes have registered for expedited barriers, a compiler barrier suffices here. The side that stops
  // watching or withdraws an object then issues a barrier for all (docs/shm.md).
  void fence() const noexcept {
    if (needs_fence) [[unlikely]] {
      std::atomic_thread_fence(std::memory_order_seq_cst);
    } else {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }
  }
  /// Tells the peer whether it must ring after writing to us. unwatch() must be followed by a barrier (Watch).
  void watch() noexcept {
    is_watched = true;
    own->is_watching.store(1, std::memory_order_relaxed);
  }
  void unwatch() noexcept {
    is_watched = false;
    own->is_watching.store(0, std::memory_order_seq_cst);
  }
  bool is_audible() const noexcept { return state == State::open || state == State::ended; }
  /// Returns which part of our memory the peer says it uses (shm/use.hpp); 0: none. A peer may use the arena as soon as
  /// it has our greeting, even before we read its answer. Strangers get no arena, so their claims are ignored.
  std::uint64_t at() const noexcept;
};

static_assert(sizeof(PairSide*) + sizeof(RingWriter) <= 64);

}  // namespace fairlead::shm
