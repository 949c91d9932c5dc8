#pragma once
// One look at one peer in a pass: first the records that it has written, then our messages that it has read. Each comes
// up as a value; the poll goes on with the next call. A record is consumed when its messages have been taken, because
// until then the peer must not write over it.

#include <cstdint>

#include "base/fifo.hpp"
#include "link/link.hpp"
#include "shm/connections.hpp"
#include "shm/counters.hpp"
#include "shm/inbox.hpp"
#include "shm/outbox.hpp"
#include "shm/transport_peer.hpp"

namespace fairlead::shm {

enum class Arrived : std::uint8_t {
  nothing,
  message,  // or a part of one
  outcome,  // of a message that the peer has read
};

class PeerPoll {
 public:
  PeerPoll(Connections& connections, TransportPeers& peers, Outbox& outbox, TransportCounters& counters,
           base::Fifo<link::Notice>& notices)
      : connections_(connections), peers_(peers), outbox_(outbox), counters_(counters), notices_(notices) {}

  /// Begins to poll the peer at `index`, whose connection is at `connection_slot`.
  void begin(std::uint32_t index, std::uint32_t connection_slot);
  /// Forgets the poll; a record that was not consumed is read again.
  void abandon() noexcept;
  /// Returns what comes next; nothing at the end of the poll. Without room for events only the rest of a record comes.
  Arrived next(bool has_room, base::Instant now);
  /// Both are valid until the next call. The bytes of a message lie in shared memory, which the peer may still change.
  const link::Delivery& message() const noexcept { return inbox_.delivery(); }
  const link::Outcome& outcome() const noexcept { return outcome_; }

  std::uint32_t index() const noexcept { return index_; }
  /// Returns whether the poll has found anything.
  bool has_found() const noexcept { return has_found_; }

 private:
  enum class Stage : std::uint8_t { over, records, outcomes };
  static constexpr int kRecordsInPoll = 64;
  static constexpr std::uint64_t kUntoldMax = 31;  // lines consumed without telling the writer

  bool next_message(bool has_room, base::Instant now);
  bool read_record(base::Instant now);
  bool end_arriving();
  void refuse();
  void end_records();
  bool next_outcome(bool has_room);
  void end(bool has_room);

  Connections& connections_;
  TransportPeers& peers_;
  Outbox& outbox_;
  TransportCounters& counters_;
  base::Fifo<link::Notice>& notices_;
  Inbox inbox_{counters_};
  link::Outcome outcome_;

  Stage stage_ = Stage::over;
  bool is_in_record_ = false;  // its messages are being taken
  bool has_found_ = false;
  int records_ = 0;  // consumed
  std::uint32_t index_ = 0, slot_ = 0;
  Connection* from_ = nullptr;
  std::size_t record_bytes_ = 0;
};

}  // namespace fairlead::shm
