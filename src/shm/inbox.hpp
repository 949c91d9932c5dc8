#pragma once
// Reads records into a Delivery: whole messages, the messages of a batch one after the other, chunks of long messages,
// and messages by reference in the sender's memory. The bytes lie in shared memory, which the peer may still change.

#include <span>

#include "link/link.hpp"
#include "shm/connection.hpp"
#include "shm/counters.hpp"
#include "shm/transport_peer.hpp"
#include "wire/shm_record.hpp"

namespace fairlead::shm {

class Inbox {
 public:
  /// The sender of the record.
  struct Source {
    link::PeerHandle handle;
    const Connection& connection;
    Arriving& arriving;
    base::Instant now;
  };

  enum class Read : std::uint8_t {
    malformed,   // or it does not continue the record before it
    message,     // the delivery is filled
    batch,       // take_batched() fills the delivery
    taken_back,  // the message that is arriving does not go on
  };

  explicit Inbox(TransportCounters& counters) : counters_(counters) {}

  /// Reads a record that is one inlined message, as most are. Returns false for all others.
  bool read_inlined(link::PeerHandle from, std::span<const std::byte> body) {
    wire::ShmHead head;
    if (!wire::is_inlined(body, head)) return false;
    inlined_.peer = from;
    inlined_.envelope.operation = static_cast<wire::Operation>(head.operation);
    inlined_.envelope.status = head.status;
    inlined_.envelope.flags = head.flags;
    inlined_.envelope.source_port = head.source_port;
    inlined_.envelope.target_port = head.target_port;
    set_inlined(body.subspan(sizeof head));
    delivery_ = &inlined_;
    return true;
  }
  /// Reads a record of any form.
  Read read_other(const Source& from, std::span<const std::byte> body);
  bool has_batched() const noexcept { return !batch_.empty(); }
  /// Fills the delivery with the next message of the batch. Returns false if the batch is malformed.
  bool take_batched();
  void forget_batch() noexcept { batch_ = {}; }
  const link::Delivery& delivery() const noexcept { return *delivery_; }

  static constexpr std::size_t kBatchMax = 1000;  // bytes of a batch; bounds the time that one record takes of a pass

 private:
  void set_inlined(std::span<const std::byte> bytes) {
    inlined_.bytes = bytes;
    inlined_.size = bytes.size();
    count_message(bytes.size());
  }
  void set_whole(link::PeerHandle from, std::span<const std::byte> bytes);
  void count_message(std::size_t bytes) {
    counters_.bytes_delivered += bytes;
    ++counters_.messages_delivered;
  }
  Read read_batch(const Source& from, std::span<const std::byte> body);
  bool read_part(const Source& from, std::span<const std::byte> body);
  bool find_payload(const Connection& from);

  TransportCounters& counters_;
  wire::ShmRecord record_;
  link::Delivery inlined_;  // a whole message without names: all other members keep their initial values
  link::Delivery other_;
  const link::Delivery* delivery_ = &inlined_;  // the last one filled
  std::span<const std::byte> batch_;            // the messages of the batch that were not delivered yet
};

}  // namespace fairlead::shm
