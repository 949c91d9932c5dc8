#include "host/pair_posts.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

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

int PairPosts::turn_to(qp::PairCore& core, const Target& target) {
  int error = 0;
  if (count_ == kMost || (count_ > 0 && target_ != target)) error = flush(core);
  target_ = target;
  return error;
}

int PairPosts::flush(qp::PairCore& core) {
  const std::uint32_t count = std::exchange(count_, 0);
  bytes_ = 0;
  if (count == 0) return 0;
  std::size_t taken = 0;
  switch (target_.kind) {
    case Target::Kind::sends:
      return core.post_send(target_.pair, std::span(sends_).first(count), taken);
    case Target::Kind::receives:
      return core.post_receive(target_.pair, std::span(receives_).first(count), taken);
    case Target::Kind::queue:
      return core.post_to_receive_queue(target_.queue, std::span(receives_).first(count), taken);
    case Target::Kind::nobody:
      break;
  }
  return EINVAL;
}

std::span<const verbs::Sge> PairPosts::keep_pieces(const TakenRequest& taken) {
  const auto* const pieces = reinterpret_cast<const verbs::Sge*>(kept_.data() + bytes_);
  std::memcpy(kept_.data() + bytes_, taken.body.data(), taken.body.size());
  bytes_ += (taken.body.size() + 15) / 16 * 16;
  return {pieces, taken.head.pieces};
}

int PairPosts::add_receive(qp::PairCore& core, const Target& target, const TakenRequest& taken) {
  const int error = turn_to(core, target);
  const auto pieces = keep_pieces(taken);
  receives_[count_++] = {.id = taken.head.id, .sges = pieces};
  return error;
}

int PairPosts::add_send(qp::PairCore& core, const Target& target, const TakenRequest& taken, bool is_datagram) {
  const int error = turn_to(core, target);
  const PairRequest& head = taken.head;
  verbs::SendRequest& request = sends_[count_];
  request = {.id = head.id,
             .opcode = static_cast<SendOpcode>(head.opcode),
             .flags = head.flags & 0xFU,
             .imm = head.imm,
             .rkey = head.rkey,
             .remote_addr = head.remote_addr};
  const std::span<const std::byte> kept(kept_.data() + bytes_, taken.body.size());
  request.sges = keep_pieces(taken);
  if ((request.flags & verbs::send_flags::inlined) != 0) {
    inlined_[count_] = {reinterpret_cast<std::uintptr_t>(kept.data()), head.bytes, 0};
    request.sges = std::span(inlined_).subspan(count_, 1);
  }
  if (is_datagram) {
    const auto words = words_of<DatagramWords>(head);
    addresses_[count_] = from_plain(words.to);
    request.to = &addresses_[count_];
    request.remote_qpn = words.remote_qpn & 0xFF'FFFFU;
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
