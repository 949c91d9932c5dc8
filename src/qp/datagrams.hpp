#pragma once
// UD datagrams in both directions, unreliable. A datagram without a posted receive, or with one that is too small, is
// dropped; the receive stays posted. A send completes as soon as the transport does not refer to its memory any more.

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
  /// Sends a request of the queue pair; `list` has its memory.
  Sent send(QueuePair& pair, RequestNumber number, const GatherList& list);

  /// Returns whether the queue pair (null: none) accepts a datagram of this size with this queue key. Counts a refusal.
  bool takes(const QueuePair* pair, std::uint32_t queue_key, std::uint64_t size);
  /// What a receiver gets of a datagram besides its payload.
  struct Arrived {
    std::uint16_t flags = 0;  // request_flags
    std::uint32_t imm = 0;
    std::uint32_t source_number = 0;
    base::SocketAddress from;
    std::array<std::byte, kHeaderArea> header;
    std::uint8_t header_kind = 0;
  };
  /// Places a datagram in the oldest receive and completes it. The caller has checked takes().
  void deliver(QueuePair& pair, const Arrived& arrived, std::span<const iovec> source, std::uint64_t size);

  /// Takes a datagram that has arrived, or its first chunk.
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
