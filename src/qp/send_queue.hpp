#pragma once
// The requests that were posted to a queue pair, in order, in a ring whose size is a power of two:
//
//     head ........ next ........ tail        head: oldest not completed    next: to be sent next    tail: to be posted
//
// Requests before `acked` are acknowledged; a read or atomic also needs its result (SendEntry::is_done). Requests
// before `begun` were sent at least once. Numbers count posted requests; sequences count only requests that are sent as
// messages.

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include <fairlead/verbs/queue_pair.hpp>

#include "base/socket_address.hpp"
#include "qp/opcode_traits.hpp"
#include "wire/pair_words.hpp"

namespace fairlead::qp {

using RequestNumber = wire::SerialNumber<struct OfSendQueue>;

struct SendEntry {
  std::uint64_t id = 0;
  std::uint64_t remote_addr = 0;
  std::uint64_t compare_add = 0;
  std::uint64_t swap = 0;
  std::uint64_t length = 0;
  std::uint64_t copied = 0;  // by ourselves, in turns before this one
  base::SocketAddress to;    // UD
  std::uint32_t rkey = 0;
  std::uint32_t imm = 0;
  std::uint32_t remote_qpn = 0;   // UD; XRC: the word of wire::SharedQueue; else 0
  std::uint32_t remote_qkey = 0;  // UD
  std::uint32_t flights = 0;      // submissions without an outcome yet
  std::uint16_t sge_count = 0;
  verbs::SendOpcode opcode = verbs::SendOpcode::send;
  std::uint8_t flags = 0;
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 0;                      // UD
  static constexpr std::uint8_t kOfShared = 0x80;  // in flags: the request names a shared receive queue
  verbs::WcStatus status = verbs::WcStatus::success;
  verbs::Cause cause = verbs::Cause::none;
  bool is_done = false;  // UC, UD: taken by the transport; read, atomic: answered
  bool is_sent = false;  // sent as a message at least once

  const OpcodeTraits& traits() const { return traits_of(opcode); }
  bool has(std::uint32_t flag) const { return (flags & flag) != 0; }
  bool has_failed() const { return status != verbs::WcStatus::success; }
  void fail(verbs::WcStatus with, verbs::Cause why) {
    status = with;
    cause = why;
  }
};

class SendQueue {
 public:
  explicit SendQueue(const verbs::QpCapacity& capacity);

  /// Empties the queue; numbers start at 0 again.
  void reset();
  /// Sets the sequence of the first message.
  void begin(wire::RequestSequence first) { first_sequence_ = first; }

  RequestNumber head() const { return head_; }
  RequestNumber next() const { return next_; }
  RequestNumber tail() const { return tail_; }
  RequestNumber begun() const { return begun_; }
  std::uint32_t reads_out() const { return reads_out_; }
  bool is_empty() const { return head_ == tail_; }
  bool is_any_out() const { return head_ != next_; }
  bool is_any_begun() const { return is_before(head_, begun_); }
  bool is_posted(RequestNumber number) const { return is_between(head_, tail_, number); }
  bool is_out(RequestNumber number) const { return is_between(head_, next_, number); }
  /// The same, or it is the last completed request, for which one more acknowledgement may arrive.
  bool is_out_or_last(RequestNumber number) const { return is_between(head_ - 1, next_, number); }
  bool is_acked(RequestNumber number) const { return is_before(number, acked_); }
  /// Returns whether the request was sent before.
  bool is_repeated(RequestNumber number) const { return is_before(number, begun_); }
  /// Returns whether the request need not be sent again.
  bool is_settled(RequestNumber number) {
    const SendEntry& entry = (*this)[number];
    return entry.traits().has_result() ? entry.is_done : is_acked(number);
  }
  /// Returns whether a request in which the peer's program takes part was sent and is not complete.
  bool awaits_program() const { return is_before(head_, answered_end_); }

  SendEntry& operator[](RequestNumber number) { return entries_[number.value & mask_]; }
  std::span<const verbs::Sge> sges_of(RequestNumber number) {
    return {sges_of_slot(number), (*this)[number].sge_count};
  }
  std::byte* inlined_of(RequestNumber number) {
    return inlined_.get() + std::size_t{number.value & mask_} * max_inline_;
  }
  wire::RequestSequence sequence_of(RequestNumber number) const { return first_sequence_ + number.value; }
  RequestNumber number_of(wire::RequestSequence sequence) const { return {count_between(first_sequence_, sequence)}; }

  /// Copies the request and its inline data. The caller adds the fields of UD, XRC and bindings.
  SendEntry& post(const verbs::SendRequest& request, std::uint64_t length);
  /// Takes back requests from `tail` on, which were not sent.
  void take_back(RequestNumber tail) { tail_ = tail; }
  /// Counts the next request as sent in a message.
  void sent_message(SendEntry& entry) {
    const OpcodeTraits& traits = entry.traits();
    entry.is_sent = true;
    ++next_;
    if (!traits.is_one_sided()) answered_end_ = next_;
    reads_out_ += traits.has_result() ? 1 : 0;
  }
  /// Counts the next request as executed by the requester itself, without a sequence.
  void carried_out();
  /// Counts the next request as executed in this engine; like a message it has a sequence.
  void sent_local();
  /// Moves on to the request after the next one.
  void skip() { ++next_; }
  /// Counts all sent requests as begun. A queue in SQD completes what was begun.
  void note_begun() {
    if (is_before(begun_, next_)) begun_ = next_;
  }
  /// Counts the oldest request as begun, so that a queue in SQD waits for it, too.
  void begin_head() {
    if (begun_ == head_) ++begun_;
  }
  /// Marks all requests before `end` as acknowledged. Returns false if they were already.
  bool acknowledge(RequestNumber end);
  /// Marks a read or atomic as answered.
  void finish_result(SendEntry& entry) {
    entry.is_done = true;
    --reads_out_;
  }
  /// Moves back to `number`: it and all later requests are sent again. Returns how many of them had been sent.
  std::uint32_t go_back(RequestNumber number);
  /// Removes the oldest request, which is complete. The entry stays valid until its slot is reused.
  SendEntry& retire();
  /// Moves all positions to the tail, after all requests were retired.
  void note_flushed();

  /// Counts a completed request. The next event frees the slots of all those counted.
  void count_unretired() { ++unretired_; }
  std::uint32_t take_unretired() { return std::exchange(unretired_, 0); }

  /// Ends the process if an invariant is violated.
  void check(std::uint32_t of_pair, std::uint32_t flights);

 private:
  friend struct PairsForTests;
  friend class PairsHandover;

  verbs::Sge* sges_of_slot(RequestNumber number) { return sges_.get() + std::size_t{number.value & mask_} * max_sges_; }

  std::uint32_t mask_, max_sges_, max_inline_, depth_;
  std::unique_ptr<SendEntry[]> entries_;
  std::unique_ptr<verbs::Sge[]> sges_;
  std::unique_ptr<std::byte[]> inlined_;
  RequestNumber head_, next_, tail_, begun_, acked_;
  RequestNumber answered_end_;            // behind the last message that depends on the peer's program
  wire::RequestSequence first_sequence_;  // of number 0, if all had been messages
  std::uint32_t unretired_ = 0;           // completed since the last event
  std::uint32_t reads_out_ = 0;           // reads and atomics sent and not answered
};

}  // namespace fairlead::qp
