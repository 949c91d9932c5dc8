#include "qp/send_queue.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/ensure.hpp"

namespace fairlead::qp {

SendQueue::SendQueue(const verbs::QpCapacity& capacity)
    : mask_(std::bit_ceil(capacity.max_send_wr) - 1),
      max_sges_(capacity.max_send_sge),
      max_inline_(capacity.max_inline),
      depth_(capacity.max_send_wr),
      entries_(std::make_unique<SendEntry[]>(std::size_t{mask_} + 1)),
      sges_(std::make_unique<verbs::Sge[]>((std::size_t{mask_} + 1) * max_sges_)),
      inlined_(std::make_unique<std::byte[]>((std::size_t{mask_} + 1) * max_inline_)) {}

void SendQueue::reset() {
  head_ = next_ = tail_ = begun_ = acked_ = answered_end_ = {};
  unretired_ = reads_out_ = 0;
}

SendEntry& SendQueue::post(const verbs::SendRequest& request, std::uint64_t length) {
  SendEntry& entry = (*this)[tail_];
  entry.id = request.id;
  entry.remote_addr = request.remote_addr;
  entry.compare_add = request.compare_add;
  entry.swap = request.swap;
  entry.length = length;
  entry.copied = 0;
  entry.rkey = request.rkey;
  entry.imm = request.imm;
  entry.flights = 0;
  entry.opcode = request.opcode;
  entry.flags = static_cast<std::uint8_t>(request.flags);
  entry.status = verbs::WcStatus::success;
  entry.cause = verbs::Cause::none;
  entry.is_done = entry.is_sent = false;
  entry.sge_count = 0;
  if (entry.has(verbs::send_flags::inlined)) {
    std::byte* to = inlined_of(tail_);
    for (const verbs::Sge& sge : request.sges) {
      if (sge.length != 0) std::memcpy(to, reinterpret_cast<const void*>(sge.addr), sge.length);
      to += sge.length;
    }
  } else {
    entry.sge_count = static_cast<std::uint16_t>(request.sges.size());
    std::ranges::copy(request.sges, sges_of_slot(tail_));
  }
  ++tail_;
  return entry;
}

void SendQueue::carried_out() {
  answered_end_ = next_;
  reads_out_ += (*this)[next_].traits().has_result() ? 1 : 0;
  ++next_;
  first_sequence_ = first_sequence_ - 1;
}

void SendQueue::sent_local() {
  reads_out_ += (*this)[next_].traits().has_result() ? 1 : 0;
  ++next_;
  note_begun();
}

bool SendQueue::acknowledge(RequestNumber end) {
  if (!is_before(acked_, end)) return false;
  acked_ = end;
  return true;
}

std::uint32_t SendQueue::go_back(RequestNumber number) {
  for (RequestNumber each = number; each != next_; ++each) {
    const SendEntry& entry = (*this)[each];
    if (entry.traits().has_result() && !entry.is_done) --reads_out_;
  }
  return count_between(number, std::exchange(next_, number));
}

SendEntry& SendQueue::retire() {
  SendEntry& entry = (*this)[head_];
  if (next_ == head_) ++next_;
  ++head_;
  return entry;
}

void SendQueue::note_flushed() {
  next_ = begun_ = acked_ = tail_;
  reads_out_ = 0;
}

void SendQueue::check(std::uint32_t of_pair, std::uint32_t flights) {
  const std::uint32_t posted = count_between(head_, tail_);
  ENSURE(posted <= depth_, "queue pair {}: {} requests in a queue of {}", of_pair, posted, depth_);
  ENSURE(count_between(head_, next_) <= posted && count_between(head_, begun_) <= posted,
         "queue pair {}: head {}, next {}, begun {}, tail {}", of_pair, head_.value, next_.value, begun_.value,
         tail_.value);
  std::uint32_t of_requests = 0, reads = 0;
  for (RequestNumber number = head_; number != tail_; ++number) {
    const SendEntry& entry = (*this)[number];
    of_requests += entry.flights;
    reads += entry.traits().has_result() && is_out(number) && !entry.is_done;
  }
  ENSURE(of_requests <= flights, "queue pair {}: {} flights of its requests, {} of all", of_pair, of_requests, flights);
  ENSURE(reads_out_ <= posted && reads <= posted, "queue pair {}: {} reads are out, of {} requests", of_pair,
         reads_out_, posted);
}

}  // namespace fairlead::qp
