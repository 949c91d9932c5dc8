#pragma once
// All local engines with which this engine communicates through shared memory: handshake, end, and wake-ups
// (docs/shm.md). The engine defines the meaning of the bytes.
//
// Thread rule: one thread at a time (the engine's lock). Another thread may poll descriptor().

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
#include "shm/published_memory.hpp"
#include "shm/read_sections.hpp"
#include "shm/users.hpp"
#include "shm/watch.hpp"

namespace fairlead::shm {

struct ConnectionOptions {
  static constexpr std::uint32_t kRingBytes = 256 * 1024, kPeersMax = 1024;
  std::string directory{};                // directory of the socket files; empty: abstract names
  bool admits_all = false;                // also admit processes of other users
  std::uint32_t ring_bytes = kRingBytes;  // per direction; a power of two, whole pages
  std::uint32_t peers_max = kPeersMax;
  std::uint64_t arena_bytes = 0;  // size of the arena for peers of the same user; 0: none
  std::size_t arena_head_bytes = 0;
  std::uint64_t huge_max = 0;      // the longest allocation in it that gets huge pages
  std::size_t identity_bytes = 0;  // bytes of records for memory outside the arena; 0: peers cannot reach such memory

  bool admits(const Socket& socket) const { return admits_all || socket.is_own(); }
  bool has_traced = false;  // also memory for peers that may trace us; needs the two above
};

/// A change of a peer's state.
struct ConnectionEvent {
  enum class Kind : std::uint8_t {
    opened,
    ended,
    declined,
    claimed,  // a stranger claims to be at the address: see vouch()
    asked_to_part,
    done,  // the peer parts, and has nothing under way any more
  } kind = Kind::opened;
  std::uint32_t slot = 0;
  base::SocketAddress address;
  std::string_view reason;  // for ended and declined; a string literal, as all of them
  End ended_by = End::peer_gone;
};

class Connections {
 public:
  static constexpr std::uint32_t kNone = ConnectionTable::kNone;
  static constexpr std::string_view kParted = "they have parted, because one of them is being replaced";

  static Result<std::unique_ptr<Connections>> open(const base::SocketAddress& own, std::uint64_t epoch,
                                                   const ConnectionOptions& options);
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  /// Returns the peer's slot if it is open or being opened.
  std::uint32_t find(const base::SocketAddress& address) const { return peers_.find(address); }
  /// Starts to open a peer. Returns its slot, or why that is impossible. An event reports the outcome. `key` is a
  /// secret shared only with the engine at that address. Without it, a stranger is not greeted and the result is
  /// `again`.
  Result<std::uint32_t> ask(const base::SocketAddress& address, base::Instant now,
                            const std::optional<base::SipKey>& key = {});
  /// Admits the stranger that claims this address and proves it by the key, if there is one. The next attend() opens
  /// it.
  void vouch(const base::SocketAddress& address, const base::SipKey& key);
  Connection& peer(std::uint32_t slot) { return peers_[slot]; }
  const Connection& peer(std::uint32_t slot) const { return peers_[slot]; }
  const ConnectionTable& peers() const noexcept { return peers_; }
  /// Returns a peer that ended while using an exposure. Reports each once, after everything that it wrote has been
  /// read.
  std::optional<Departure> take_departed() { return peers_.take_departed(); }

  /// Handles greetings, deaths and wake-ups; makes system calls. The caller then drains next_event().
  void attend(base::Instant now);
  /// Returns when attend() must be called at the latest.
  base::Instant next_deadline() const noexcept { return std::min(expire_at_, look_at_); }
  const ConnectionEvent* first_event() { return events_.empty() ? nullptr : &events_.front(); }
  std::optional<ConnectionEvent> next_event() { return events_.take(); }
  /// Announces to all peers that our engine ends, and admits no more peers.
  void take_leave();
  /// While closed, no peer is admitted and none is asked.
  void set_closed(bool is_closed) noexcept { is_closed_ = is_closed; }
  /// Ends a peer, with an event.
  void end(std::uint32_t slot, std::string_view reason, End by = End::here);
  /// Ends a peer that stays in withdrawn memory, or declines it, with an event.
  void put_out(const SectionReader& reader);
  /// Ends a peer, with an event, because its shared memory contained invalid data.
  void refuse(std::uint32_t slot, std::string_view reason);
  /// Ends a peer that claims to have read more than was written.
  void refuse_reader(std::uint32_t slot) { refuse(slot, "it claims to have read more than was written"); }
  /// Frees the slot. Call after the `ended` event, when nothing refers to the slot any more.
  void forget(std::uint32_t slot);

  /// Selects the peers that a pass polls, and prepares for sleep on descriptor().
  Watch& watch() noexcept { return *watch_; }
  const Watch& watch() const noexcept { return *watch_; }
  /// Readable when attend() has work. A peer that rings an armed doorbell makes it readable.
  int descriptor() const noexcept { return waited_for_.descriptor(); }

  /// Our shared segment; null if there is none.
  Arena* arena() noexcept { return published_ ? &published_->arena : nullptr; }
  /// The applications' memory in the arena. Valid only if arena() is not null.
  RemappedRanges& remapped() noexcept { return published_->remapped; }
  const std::shared_ptr<PublishedMemory>& published() const noexcept { return published_; }
  /// Which peers use our memory.
  const ReadSections& read_sections() const noexcept { return read_sections_; }
  /// Memory for records that only this process can write. Null if peers reach no memory outside the arena.
  std::byte* records() const noexcept { return identity_ ? identity_->records() : nullptr; }

  const ConnectionCounters& counters() const noexcept { return counters_; }

 private:
  static constexpr std::uint64_t kListener = ~0ULL;  // name of the listener in the poll set
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
  /// Reserves room for the events of one new peer and of the end of every current peer. Called before an event is
  /// queued, so that an end never lacks memory.
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
  /// Memory is shared only with processes that our own user could read and write by other means.
  bool publishes_to(const Socket& socket) const { return published_ && socket.is_own(); }
  void introduce(Greeting& greeting) const;
  void adopt_arena(Connection& peer, int file, const Greeting& greeting);
  void adopt_traced(Connection& peer, const base::FileDescriptor& process, const Greeting& greeting);
  Result<> check_asked(const Socket& socket, const base::SocketAddress& address, bool has_key);
  void take_over(Connection& peer, const Greeting& theirs, Memory doorbell) const;
  bool gives_way(std::uint32_t slot, const Greeting& greeting);

  base::SocketAddress own_;
  std::uint64_t epoch_;
  ConnectionOptions options_;
  bool has_barriers_ = false;
  Users users_;  // before all members that hold descriptors of strangers
  Listener listener_;
  PollSet waited_for_;
  std::shared_ptr<PublishedMemory> published_;
  std::optional<Identity> identity_;
  ConnectionTable peers_;
  ReadSections read_sections_{peers_};
  std::optional<Watch> watch_;  // set from open() on
  base::Fifo<ConnectionEvent> events_;
  bool is_leaving_ = false, is_closed_ = false;
  base::Instant expire_at_ = base::kNever;  // earliest deadline of an unfinished handshake
  base::Instant look_at_ = base::kNever;    // next look at all peers, while one of them is a stranger
  base::Instant accept_at_ = base::kNever;  // accept nothing before this time, because the kernel had no resources left
  ConnectionCounters counters_;
};

}  // namespace fairlead::shm
