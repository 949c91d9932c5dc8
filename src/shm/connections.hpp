#pragma once
// All engines of this host that this one talks to through shared memory: how they meet, part, and tell each other that
// there is news (docs/shm.md). What the bytes mean is the engine's affair.
//
// Thread rule: one thread at a time (the engine's lock); descriptor() may be polled by another.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fairlead/error.hpp>

#include "base/fifo.hpp"
#include "base/sip_hash.hpp"
#include "base/socket_address.hpp"
#include "base/time.hpp"
#include "shm/arena.hpp"
#include "shm/connection_table.hpp"
#include "shm/counters.hpp"
#include "shm/greeting.hpp"
#include "shm/identity.hpp"
#include "shm/listener.hpp"
#include "shm/poll_set.hpp"
#include "shm/read_sections.hpp"
#include "shm/remapped_ranges.hpp"
#include "shm/users.hpp"
#include "shm/watch.hpp"

namespace fairlead::shm {

struct ConnectionOptions {
  static constexpr std::uint32_t kRingBytes = 256 * 1024, kPeersMax = 1024;
  std::string directory{};                // of the sockets' names; empty: abstract names
  bool admits_all = false;                // also processes of other users
  std::uint32_t ring_bytes = kRingBytes;  // one direction; a power of two, whole pages
  std::uint32_t peers_max = kPeersMax;
  std::uint64_t arena_bytes = 0;  // published to peers of our user; 0: nothing
  std::size_t arena_head_bytes = 0;
  std::uint64_t huge_max = 0;      // longest allocation in it that gets huge pages
  std::size_t identity_bytes = 0;  // of records for memory outside it, beside an arena; 0: such memory is not reached
};

/// What happened to a peer.
struct ConnectionEvent {
  enum class Kind : std::uint8_t {
    opened,
    ended,
    declined,
    claimed,  // a stranger says that he is at the address: see vouch()
  } kind = Kind::opened;
  std::uint32_t slot = 0;
  base::SocketAddress address;
  std::string_view reason;  // of ended and declined; of the program, as all are
};

/// What we show of our memory. Lives as long as somebody uses some of it, also longer than the connections.
struct PublishedMemory {
  PublishedMemory(Arena made, std::uint64_t huge_max) : arena(std::move(made)), remapped(arena, huge_max) {}
  Arena arena;
  RemappedRanges remapped;
};

class Connections {
 public:
  static constexpr std::uint32_t kNone = ConnectionTable::kNone;

  static Result<std::unique_ptr<Connections>> open(const base::SocketAddress& own, std::uint64_t epoch,
                                                   const ConnectionOptions& options);
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  /// The slot of the peer at an address if it is open, or being opened.
  std::uint32_t find(const base::SocketAddress& address) const { return peers_.find(address); }
  /// Begins to open a peer; its slot, or why it cannot be. An event tells of the end of it. `key`: what only the engine
  /// at that address and we know. Without it a stranger is not greeted: `again`.
  Result<std::uint32_t> ask(const base::SocketAddress& address, base::Instant now,
                            const std::optional<base::SipKey>& key = {});
  /// The next attend() opens the stranger who claims this address and has proven by the key to be there, if there is
  /// one.
  void vouch(const base::SocketAddress& address, const base::SipKey& key);
  Connection& peer(std::uint32_t slot) { return peers_[slot]; }
  const Connection& peer(std::uint32_t slot) const { return peers_[slot]; }
  const ConnectionTable& peers() const noexcept { return peers_; }
  /// A peer that is gone from the middle of an exposure: each once, when what it had written has been read.
  std::optional<Departure> take_departed() { return peers_.take_departed(); }

  /// System calls: greetings, deaths, and what has woken us. Then next_event() until there is none.
  void attend(base::Instant now);
  /// When it has to be called at the latest.
  base::Instant next_deadline() const noexcept { return std::min(expire_at_, look_at_); }
  const ConnectionEvent* first_event() { return events_.empty() ? nullptr : &events_.front(); }
  std::optional<ConnectionEvent> next_event() { return events_.take(); }
  /// Our engine ends: all are told, for when they notice it, and nobody is let in any more.
  void take_leave();
  /// Ends a peer, with an event.
  void end(std::uint32_t slot, std::string_view reason);
  /// Ends a peer that does not leave what it should, or declines it, with an event.
  void put_out(const SectionReader& reader);
  /// As end(), because its memory made no sense.
  void refuse(std::uint32_t slot, std::string_view reason);
  /// The same of one that says it has read what nobody wrote.
  void refuse_reader(std::uint32_t slot) { refuse(slot, "it claims to have read what nobody wrote"); }
  /// After the `ended` event, when nothing refers to it any more.
  void forget(std::uint32_t slot);

  /// Which peers a pass looks at; what it takes to sleep on descriptor().
  Watch& watch() noexcept { return *watch_; }
  const Watch& watch() const noexcept { return *watch_; }
  /// Readable when attend() has something to do; a peer that rings an armed doorbell sees to that.
  int descriptor() const noexcept { return waited_for_.descriptor(); }

  /// What we show to peers; null if nothing.
  Arena* arena() noexcept { return published_ ? &published_->arena : nullptr; }
  /// Applications' memory in it; there if arena() is.
  RemappedRanges& remapped() noexcept { return published_->remapped; }
  const std::shared_ptr<PublishedMemory>& published() const noexcept { return published_; }
  /// Who is in our memory.
  const ReadSections& read_sections() const noexcept { return read_sections_; }
  /// Memory for records that only we can write; null if peers do not reach us but in the arena.
  std::byte* records() const noexcept { return identity_ ? identity_->records() : nullptr; }

  const ConnectionCounters& counters() const noexcept { return counters_; }

 private:
  static constexpr std::uint64_t kListener = ~0ULL;  // among what is waited for
  static constexpr base::Duration kAnswerWithin = std::chrono::seconds(30);

  Connections(const base::SocketAddress& own, std::uint64_t epoch, const ConnectionOptions& options)
      : own_(own), epoch_(epoch), options_(options), peers_(options.peers_max) {}

  Memory::Layout pair_layout() const { return {4096, options_.ring_bytes, 2}; }
  std::uint32_t make_peer(Socket socket, base::Instant now);
  void accept_all(base::Instant now);
  void pause_accepting(base::Instant now);
  bool make_room(const Socket& newcomer);
  void expire(base::Instant now);
  void look_at_everybody(base::Instant now);
  void expire_by(base::Instant due) noexcept { expire_at_ = std::min(expire_at_, due); }
  /// What is told of a peer that comes, and of the end of each that is there: asked for before anything is told, so
  /// that no end finds no memory.
  bool has_room_for_events() noexcept { return events_.has_room(peers_.size() + 4); }
  void serve(std::uint32_t slot);
  void read_letter(std::uint32_t slot);
  void drop(std::uint32_t slot);
  Result<std::uint32_t> begin_asking(const base::SocketAddress& address, base::Instant now,
                                     const std::optional<base::SipKey>& key);
  Greeting own_greeting(std::uint32_t slot, std::uint32_t ring_bytes) const;
  void take_greeting(std::uint32_t slot, Letter letter, std::span<const std::byte> bytes);
  void answer_claim(std::uint32_t slot);
  void answer(std::uint32_t slot, const Greeting& greeting, const Letter& letter,
              const std::optional<base::SipKey>& key);
  void take_answer(std::uint32_t slot, const Letter& letter, std::span<const std::byte> bytes);
  void become_open(std::uint32_t slot, const std::uint64_t (&secrets)[2]);
  void decline(std::uint32_t slot, std::string_view reason);
  void close(std::uint32_t slot);
  void close_socket(Connection& peer) const;
  bool is_admitted(const Socket& socket) const { return options_.admits_all || socket.is_own(); }
  /// Memory is published only to whom our own user could read and write it by other means.
  bool publishes_to(const Socket& socket) const { return published_ && socket.is_own(); }
  void introduce(Greeting& greeting) const;
  void adopt_arena(Connection& peer, int file, const Greeting& greeting);
  Result<> check_asked(const Socket& socket, const base::SocketAddress& address, bool has_key);
  void take_over(Connection& peer, const Greeting& theirs, Memory doorbell) const;
  bool gives_way(std::uint32_t slot, const Greeting& greeting);

  base::SocketAddress own_;
  std::uint64_t epoch_;
  ConnectionOptions options_;
  bool has_barriers_ = false;
  Users users_;  // before all that holds what strangers gave
  Listener listener_;
  PollSet waited_for_;
  std::shared_ptr<PublishedMemory> published_;
  std::optional<Identity> identity_;
  ConnectionTable peers_;
  ReadSections read_sections_{peers_};
  std::optional<Watch> watch_;  // there from open() on
  base::Fifo<ConnectionEvent> events_;
  bool is_leaving_ = false;
  base::Instant expire_at_ = base::kNever;  // the earliest of what is not open yet
  base::Instant look_at_ = base::kNever;    // at all peers, as long as one is a stranger
  base::Instant accept_at_ = base::kNever;  // not before then, if the kernel had nothing left
  ConnectionCounters counters_;
};

}  // namespace fairlead::shm
