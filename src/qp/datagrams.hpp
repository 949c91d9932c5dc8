#pragma once
// UD: datagrams to anybody, without a promise. One that finds no receive, or one too small, is dropped and the receive
// stays. Sending completes when the transport has taken the bytes.

#include <array>
#include <cstdint>
#include <span>

#include "qp/executor.hpp"
#include "qp/network_header.hpp"
#include "qp/outstanding.hpp"
#include "qp/pair_table.hpp"
#include "qp/reorder_buffer.hpp"

namespace fairlead::qp {

class Datagrams {
 public:
  static constexpr std::uint64_t kBytesMost = 4096;

  Datagrams(Shared& shared, PairTable& pairs, ReceiveQueues& receives, ReorderBuffer& arrivals, Completer& completer,
            Executor& executor)
      : shared_(shared),
        pairs_(pairs),
        receives_(receives),
        arrivals_(arrivals),
        completer_(completer),
        executor_(executor) {}

  enum class Sent : std::uint8_t { done, in_flight, no_room, pair_ended };
  /// The next request of a pair, whose own memory is in the list.
  Sent send(QueuePair& pair, RequestNumber number, const GatherList& list);

  /// Whether a queue pair (or none) takes a datagram of that size under that queue key; if not, it is counted.
  bool takes(const QueuePair* pair, std::uint32_t queue_key, std::uint64_t size);
  /// What a receiver is told of one, besides its bytes.
  struct Arrived {
    std::uint16_t flags = 0;  // request_flags
    std::uint32_t imm = 0;
    std::uint32_t source_number = 0;
    base::SocketAddress from;
    std::array<std::byte, kHeaderArea> header;
    std::uint8_t header_kind = 0;
  };
  /// To one that takes it.
  void deliver(QueuePair& pair, const Arrived& arrived, std::span<const iovec> source, std::uint64_t size);

  /// One that has come, or its first chunk.
  void take(const link::Delivery& delivery);
  void take_chunk(std::uint32_t slot, const link::Delivery& delivery);

 private:
  Sent submit(QueuePair& pair, RequestNumber number, const wire::Envelope& envelope, const GatherList& list);
  Sent drop();
  QueuePair* judge(const wire::Envelope& envelope, std::uint64_t size);
  void execute(const wire::Envelope& envelope, const base::SocketAddress& from, std::span<const iovec> source,
               std::uint64_t size);
  verbs::Cause place(const QueuePair& pair, std::span<const std::byte> header, std::span<const iovec> source);

  Shared& shared_;
  PairTable& pairs_;
  ReceiveQueues& receives_;
  ReorderBuffer& arrivals_;
  Completer& completer_;
  Executor& executor_;
};

}  // namespace fairlead::qp
