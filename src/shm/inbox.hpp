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

  Read read(const Source& from, const RingReader::Record& record) {
    wire::ShmHead head;
    if (wire::is_inlined(record.body, head)) [[likely]] {
      set_envelope(head);
      set_whole(from.handle, record.body.subspan(sizeof head));
      return Read::message;
    }
    return read_other(from, record, head);
  }
  bool has_batched() const noexcept { return !batch_.empty(); }
  /// Fills the delivery with the next message of the batch. Returns false if the batch is malformed.
  bool take_batched();
  void forget_batch() noexcept { batch_ = {}; }
  const link::Delivery& delivery() const noexcept { return delivery_; }

  static constexpr std::size_t kBatchMax = 1000;  // bytes of a batch; bounds the time that one record takes of a pass

 private:
  void set_envelope(const wire::ShmHead& head) {
    delivery_.envelope = {.operation = static_cast<wire::Operation>(head.operation),
                          .status = head.status,
                          .flags = head.flags,
                          .source_port = head.source_port,
                          .target_port = head.target_port};
  }
  /// Makes `bytes` the payload of the delivery, and counts the message.
  void set_whole(link::PeerHandle from, std::span<const std::byte> bytes) {
    delivery_.peer = from;
    delivery_.bytes = bytes;
    delivery_.size = bytes.size();
    delivery_.offset = 0;
    delivery_.reassembly = link::Delivery::kWhole;
    delivery_.is_first = delivery_.is_last = true;
    delivery_.target = 0;
    delivery_.permission = nullptr;
    count_message();
  }
  void count_message() {
    counters_.bytes_delivered += delivery_.bytes.size();
    ++counters_.messages_delivered;
  }
  Read read_other(const Source& from, const RingReader::Record& record, const wire::ShmHead& head);
  Read read_batch(const Source& from, std::span<const std::byte> body, const wire::ShmHead& head);
  bool read_part(const Source& from, const RingReader::Record& record);
  bool find_payload(const Connection& from);

  TransportCounters& counters_;
  wire::ShmRecord record_;
  link::Delivery delivery_;
  std::span<const std::byte> batch_;  // the messages of the batch that were not delivered yet
};

}  // namespace fairlead::shm
