#pragma once
// Another engine of this host, as Connections keeps it: two rings in shared memory, its doorbell, and the socket that
// tells of its death.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

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

/// What one side tells of itself beside its ring. The other side can write here, too: nobody reads back what he wrote.
struct PairSide {
  alignas(128) std::atomic<std::uint64_t> passed{0};       // lines of the other's ring that it has done with
  alignas(128) std::atomic<std::uint32_t> is_watching{0};  // it looks here by itself: nobody has to ring
  alignas(128) std::atomic<std::uint64_t> at{0};  // what it is at in the other's memory (shm/use.hpp); 0: outside
  std::atomic<std::uint32_t> sees_arena{0};       // it has mapped the other's
  std::atomic<std::uint32_t> is_leaving{0};  // its engine ends, and not by a fault: told before the connection closes
  std::atomic<std::uint32_t> tickets[Tickets::kCount] = {};  // that it has given the other (tickets.hpp)
};
/// At the start of a pair's memory. Side 0 asked, side 1 accepted.
struct PairPage {
  PairSide sides[2];
};
static_assert(sizeof(PairPage) <= 4096);

/// What a stranger has sent, until it is proven that he is who he says.
struct Claim {
  Greeting greeting;
  Letter letter;
};

struct Connection {
  enum class State : std::uint8_t {
    closed,
    asking,     // we have greeted, it has not answered
    answering,  // it has connected, its greeting has not come
    claiming,   // a stranger has greeted, and what it says is not proven
    vouched,    // it is proven, and will be answered
    open,
    ended,  // it is gone or was found lying; what it wrote before may still be read
  };
  State state = State::closed;
  bool sees_ours = false;    // it has been given our arena
  bool has_asked = false;    // we connected to it
  bool needs_fence = false;  // the kernel has no barrier for both of us
  std::uint32_t generation = 1;
  base::SocketAddress address;
  base::Instant since{};                 // when it was begun, until it is open
  std::unique_ptr<Claim> claim;          // of a stranger who has greeted
  Greeting greeting;                     // ours, if we have asked
  std::optional<base::SipKey> pair_key;  // between us and a stranger
  std::uint64_t epoch = 0;
  Socket socket;
  Memory memory;
  Doorbell doorbell;               // the peer's
  std::uint32_t doorbell_bit = 0;  // ours in it
  PairSide* own = nullptr;         // written, never read
  const PairSide* other = nullptr;
  bool is_watched = false;    // told in own->is_watching
  std::uint16_t turn = 0;     // of the last time that we were in its memory; never read from own->at
  std::uint64_t left_at = 0;  // closed: the exposure that it was at, until somebody has been told
  RingWriter writer;
  RingReader reader;
  std::string_view end_reason;    // why it is ended
  std::shared_ptr<Memory> arena;  // what it shows us of its memory
  std::uint64_t arena_bytes = 0;
  CrossMemory process;  // and what it does not show there, if the kernel lets us

  /// The end of the connection will be that of our engine.
  void say_leaving() noexcept {
    if (own != nullptr) own->is_leaving.store(1, std::memory_order_release);
  }
  bool is_leaving() const noexcept {
    return other != nullptr && other->is_leaving.load(std::memory_order_acquire) != 0;
  }

  /// Around what we do in its memory (ReadSection). What it withdraws before we have entered we find withdrawn; for
  /// what we have begun it waits (ReadSections). A release: it may find this instead of the end of the time before.
  void enter(Use use) noexcept {
    if (++turn == 0) ++turn;
    own->at.store(std::uint64_t{turn} << Use::kTurnShift | use.name(), std::memory_order_release);
    fence();
  }
  void leave() noexcept { own->at.store(0, std::memory_order_release); }
  /// Whether it may be reached by system calls for so many bytes. Whoever looks at its ring by itself is quicker there;
  /// for all others somebody would have to be woken.
  bool may_call(std::uint64_t bytes, std::uint64_t most, std::uint64_t most_awake) const noexcept {
    const bool is_awake = other->is_watching.load(std::memory_order_relaxed) != 0;
    return process.is_reached() && bytes <= (is_awake ? most_awake : most);
  }

  /// After something was published to it: makes sure that it will look.
  void alert() noexcept {
    fence();
    if (other->is_watching.load(std::memory_order_relaxed) == 0) [[unlikely]]
      ring();
  }
  /// It looks at our ring in its next pass, and has one soon.
  void ring() noexcept {
    if (doorbell.ring(doorbell_bit)) [[unlikely]]
      socket.nudge();
  }
  // Where both have registered for barriers, the one who stops watching, or withdraws something, makes all of us pass
  // one (docs/shm.md).
  void fence() const noexcept {
    if (needs_fence) [[unlikely]] {
      std::atomic_thread_fence(std::memory_order_seq_cst);
    } else {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }
  }
  /// Whether whoever writes to us has to ring. To stop is a promise that takes a barrier (Watch).
  void watch() noexcept {
    is_watched = true;
    own->is_watching.store(1, std::memory_order_relaxed);
  }
  void unwatch() noexcept {
    is_watched = false;
    own->is_watching.store(0, std::memory_order_seq_cst);
  }
  bool is_audible() const noexcept { return state == State::open || state == State::ended; }
  /// What it says that it is at in our memory (shm/use.hpp); 0: nothing. Whoever has our greeting has the arena, though
  /// its answer may not have been read. Strangers have none, whatever they say.
  std::uint64_t at() const noexcept;
};

}  // namespace fairlead::shm
