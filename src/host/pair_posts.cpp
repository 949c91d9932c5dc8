#include "host/pair_posts.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include "wire/pair_words.hpp"

namespace fairlead::host {

using verbs::SendOpcode;

namespace {

template <typename Words>
Words words_of(const PairRequest& request) {
  static_assert(sizeof(Words) <= sizeof request.words);
  Words words;
  std::memcpy(&words, request.words.data(), sizeof words);
  return words;
}

}  // namespace

int PairPosts::turn_to(qp::PairCore& core, qp::PairHandle pair) {
  int error = 0;
  if (count_ == kMost || (count_ > 0 && pair_ != pair)) error = flush(core);
  pair_ = pair;
  return error;
}

int PairPosts::flush(qp::PairCore& core) {
  const std::uint32_t count = std::exchange(count_, 0);
  bytes_ = 0;
  if (count == 0) return 0;
  std::size_t taken = 0;
  return core.post_send(pair_, std::span(sends_).first(count), taken);
}

std::span<const std::byte> PairPosts::keep(const TakenRequest& taken) {
  std::byte* const to = kept_.data() + bytes_;
  std::memcpy(to, taken.body.data(), taken.body.size());
  bytes_ += (taken.body.size() + 15) / 16 * 16;
  return {to, taken.body.size()};
}

int PairPosts::add(qp::PairCore& core, qp::PairHandle pair, const TakenRequest& taken, bool is_datagram) {
  const int error = turn_to(core, pair);
  const PairRequest& head = taken.head;
  verbs::SendRequest& request = sends_[count_];
  request = {.id = head.id,
             .opcode = static_cast<SendOpcode>(head.opcode),
             .flags = head.flags & 0xFU,
             .imm = head.imm,
             .rkey = head.rkey,
             .remote_addr = head.remote_addr};
  const std::span<const std::byte> kept = keep(taken);
  request.sges = {reinterpret_cast<const verbs::Sge*>(kept.data()), head.pieces};
  if ((request.flags & verbs::send_flags::inlined) != 0) {
    inlined_[count_] = {reinterpret_cast<std::uintptr_t>(kept.data()), head.bytes, 0};
    request.sges = std::span(inlined_).subspan(count_, 1);
  }
  if (is_datagram) {
    const auto words = words_of<DatagramWords>(head);
    addresses_[count_] = from_plain(words.to);
    request.to = &addresses_[count_];
    request.remote_qpn = words.remote_qpn & wire::PairPort::kNumberMost;
    request.remote_qkey = words.remote_qkey;
  } else if (request.opcode == SendOpcode::bind_window) {
    bindings_[count_] = words_of<verbs::WindowBinding>(head);
    request.binding = &bindings_[count_];
  } else {
    const auto words = words_of<AtomicWords>(head);
    request.compare_add = words.compare_add;
    request.swap = words.swap;
  }
  ++count_;
  return error;
}

}  // namespace fairlead::host
