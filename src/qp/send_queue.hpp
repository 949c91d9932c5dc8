#pragma once
// The requests that were posted to a queue pair, in order, in a ring whose size is a power of two:
//
//     head ........ next ........ tail        head: oldest not completed    next: to be sent next    tail: to be posted
//
// All before `acked` are acknowledged; a read or atomic also needs its answer (SendEntry::is_done). All before `begun`
// were sent at least once. Numbers count what was posted, sequences count what is sent as messages alone.

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
  base::SocketAddress to;  // UD
  std::uint32_t rkey = 0;
  std::uint32_t imm = 0;
  std::uint32_t remote_qpn = 0;   // UD; XRC: the word of wire::SharedQueue; else 0
  std::uint32_t remote_qkey = 0;  // UD
  std::uint32_t flights = 0;      // submissions whose outcome has not come
  std::uint16_t sge_count = 0;
  verbs::SendOpcode opcode = verbs::SendOpcode::send;
  std::uint8_t flags = 0;
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 0;                      // UD
  static constexpr std::uint8_t kOfShared = 0x80;  // in flags: it names one
  verbs::WcStatus status = verbs::WcStatus::success;
  verbs::Cause cause = verbs::Cause::none;
  bool is_done = false;  // UC, UD: handed to the wire; read, atomic: answered
  bool is_sent = false;  // as a message, at least once

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

  /// Empty; numbers begin anew.
  void reset();
  /// The sequence of the first message.
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
  /// Or the last that was completed, of which one more acknowledgement may come.
  bool is_out_or_last(RequestNumber number) const { return is_between(head_ - 1, next_, number); }
  bool is_acked(RequestNumber number) const { return is_before(number, acked_); }
  /// It was sent before.
  bool is_repeated(RequestNumber number) const { return is_before(number, begun_); }
  /// Whether it need not be sent again.
  bool is_settled(RequestNumber number) {
    const SendEntry& entry = (*this)[number];
    return entry.traits().has_result() ? entry.is_done : is_acked(number);
  }
  /// Something that the peer's program takes part in was sent, and is not complete.
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

  /// Copies it, with what is inlined; the caller adds what UD needs.
  SendEntry& post(const verbs::SendRequest& request, std::uint64_t length);
  /// Nobody has seen what was posted from there on.
  void take_back(RequestNumber tail) { tail_ = tail; }
  /// The next one was sent as a message.
  void sent_message(SendEntry& entry) {
    const OpcodeTraits& traits = entry.traits();
    entry.is_sent = true;
    ++next_;
    if (!traits.is_one_sided()) answered_end_ = next_;
    reads_out_ += traits.has_result() ? 1 : 0;
  }
  /// The next one was carried out by ourselves: the peer does not count it.
  void carried_out();
  /// The next one is executed in this process, which counts as a message.
  void sent_local();
  /// The next one needs no sending.
  void skip() { ++next_; }
  /// What was sent counts as begun: a queue that is drained brings it to its end.
  void note_begun() {
    if (is_before(begun_, next_)) begun_ = next_;
  }
  /// A queue that is drained waits for the oldest, too.
  void begin_head() {
    if (begun_ == head_) ++begun_;
  }
  /// All before `end` were executed. False if that was known.
  bool acknowledge(RequestNumber end);
  /// A read or atomic has its result.
  void finish_result(SendEntry& entry) {
    entry.is_done = true;
    --reads_out_;
  }
  /// All from `number` on are sent again. How many had been sent.
  std::uint32_t go_back(RequestNumber number);
  /// The oldest is complete.
  SendEntry& retire();
  /// All were retired, whatever was under way.
  void note_flushed();

  /// One is complete, with an event or without: how many slots the next event gives back.
  void count_unretired() { ++unretired_; }
  std::uint32_t take_unretired() { return std::exchange(unretired_, 0); }

  /// Ends the process if anything contradicts itself.
  void check(std::uint32_t of_pair, std::uint32_t flights);

 private:
  friend struct PairsForTests;

  verbs::Sge* sges_of_slot(RequestNumber number) { return sges_.get() + std::size_t{number.value & mask_} * max_sges_; }

  std::uint32_t mask_, max_sges_, max_inline_, depth_;
  std::unique_ptr<SendEntry[]> entries_;
  std::unique_ptr<verbs::Sge[]> sges_;
  std::unique_ptr<std::byte[]> inlined_;
  RequestNumber head_, next_, tail_, begun_, acked_;
  RequestNumber answered_end_;            // behind the last message sent that the peer's program takes part in
  wire::RequestSequence first_sequence_;  // of number 0, if all had been sent as messages
  std::uint32_t unretired_ = 0;           // completed without an event since the last one
  std::uint32_t reads_out_ = 0;           // reads and atomics, sent and not done
};

}  // namespace fairlead::qp
