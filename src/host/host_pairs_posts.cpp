// Posts to the host engine.

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "host/host_pairs.hpp"
#include "qp/post_check.hpp"

namespace fairlead::host {

using verbs::QpState;
using verbs::SendOpcode;
namespace flags = verbs::send_flags;

namespace {

template <typename Words>
void put(PairRequest& request, const Words& words) {
  static_assert(sizeof words <= sizeof request.words);
  std::memcpy(request.words.data(), &words, sizeof words);
}

std::span<const std::byte> inlined(const verbs::SendRequest& request, std::array<std::byte, kPairRequestMost>& buffer) {
  std::size_t length = 0;
  for (const verbs::Sge& sge : request.sges) {
    if (sge.length != 0) std::memcpy(buffer.data() + length, reinterpret_cast<const void*>(sge.addr), sge.length);
    length += sge.length;
  }
  return std::span(buffer).first(length);
}

constexpr std::size_t kElementsMost = PairRing::elements_of(kPairRequestMost);  // of a request

/// Returns how many elements of the ring the requests take, or all that it has.
std::size_t elements_of(std::span<const verbs::SendRequest> requests) {
  std::size_t elements = 0;
  for (const verbs::SendRequest& request : requests) {
    std::size_t bytes = request.sges.size_bytes();
    if ((request.flags & flags::inlined) != 0) {
      bytes = 0;
      for (const verbs::Sge& sge : request.sges) bytes += sge.length;
    }
    elements += PairRing::elements_of(std::min(bytes, kPairRequestMost));
  }
  return std::min<std::size_t>(elements, kPairRequestsMax);
}

}  // namespace

/// `ahead` is the number of earlier requests in the same call.
int HostPairs::check(const ClientPair& pair, const verbs::SendRequest& request, std::uint32_t ahead) const {
  std::uint64_t length = 0;
  if (pair.state() < QpState::rts || !qp::is_possible(pair.plan, request, length)) return EINVAL;
  const std::uint32_t retired = accounts_[pair.handle.index].sends.count();
  return pair.sends_posted + ahead - retired >= pair.plan.capacity.max_send_wr ? ENOMEM : 0;
}

/// Posts a checked request. Returns false if the ring is full or the host engine has ended: see wait_for_room().
bool HostPairs::post(ClientPair& pair, const verbs::SendRequest& request) {
  const qp::OpcodeTraits& traits = qp::traits_of(request.opcode);
  if (!is_ended_) {
    PairRequest plain{.id = request.id,
                      .remote_addr = request.remote_addr,
                      .object = pair.handle.index,
                      .generation = pair.handle.generation,
                      .rkey = request.rkey,
                      .imm = request.imm,
                      .kind = std::to_underlying(PairRequest::Kind::post_send),
                      .opcode = std::to_underlying(request.opcode),
                      .flags = static_cast<std::uint8_t>(request.flags)};
    if (traits.is_atomic()) put(plain, AtomicWords{request.compare_add, request.swap});
    if (pair.plan.type == verbs::QpType::ud)
      put(plain, DatagramWords{to_plain(*request.to), request.remote_qpn, request.remote_qkey});
    if (request.opcode == SendOpcode::bind_window) put(plain, *request.binding);
    std::array<std::byte, kPairRequestMost> buffer;
    std::span<const std::byte> rest = std::as_bytes(request.sges);
    if ((request.flags & flags::inlined) != 0) {
      rest = inlined(request, buffer);
      plain.bytes = static_cast<std::uint16_t>(rest.size());
    } else {
      plain.pieces = static_cast<std::uint8_t>(request.sges.size());
    }
    if (!ring_.push(plain, rest)) return false;
  }
  ++pair.sends_posted;
  if (is_ended_) {
    flush(pair, false, {request.id, traits.completion});
  } else {
    pair.sends.push({request.id, traits.completion});
  }
  return true;
}

/// Waits, without the lock, until a ring has room. If the host engine ends meanwhile, ends what is pending; later
/// posts are then flushed. Afterwards the caller must find its objects again.
void HostPairs::wait_for_room(std::unique_lock<base::ShortLock>& lock, PairRing& ring, std::size_t elements) {
  for (std::uint32_t step = 0; !host_.has_ended() && !ring.has_room(elements); ++step) {
    lock.unlock();
    ring.wait_a_moment(step);
    lock.lock();
  }
  if (host_.has_ended()) end_all();
}

int HostPairs::post_send(qp::PairHandle handle, std::span<const verbs::SendRequest> requests, std::size_t& taken) {
  taken = 0;
  std::unique_lock lock(mutex_);
  ClientPair* pair = find(handle);
  int error = 0;
  while (taken < requests.size() && pair != nullptr) {
    error = check(*pair, requests[taken], 0);
    if (error != 0) break;
    if (post(*pair, requests[taken])) [[likely]] {
      ++taken;
    } else {
      wait_for_room(lock, ring_, kElementsMost);
      pair = find(handle);
    }
  }
  if (taken != 0) ring_.wake();
  return pair == nullptr ? EINVAL : error;
}

// Room for the whole list is there before its first request is posted. A list that is longer than the ring holds the
// lock until it is posted.
int HostPairs::post_send_all(qp::PairHandle handle, std::span<const verbs::SendRequest> requests) {
  std::unique_lock lock(mutex_);
  if (!ring_.has_room(requests.size() * kElementsMost)) [[unlikely]]
    wait_for_room(lock, ring_, elements_of(requests));
  ClientPair* const pair = find(handle);
  if (pair == nullptr) return EINVAL;
  for (std::uint32_t i = 0; i < requests.size(); ++i)
    if (const int error = check(*pair, requests[i], i); error != 0) return error;
  for (const verbs::SendRequest& request : requests) {
    for (std::uint32_t step = 0; !post(*pair, request); ++step)
      if (!ring_.wait_a_moment(step)) end_all();
  }
  ring_.wake();
  return 0;
}

/// Returns 0, an error, or EAGAIN: the ring is full or the host engine has ended.
int HostPairs::post(ClientPair& pair, const verbs::ReceiveRequest& request) {
  const verbs::QpCapacity& capacity = pair.plan.capacity;
  if (request.sges.size() > capacity.max_recv_sge) return EINVAL;
  const std::uint32_t retired = accounts_[pair.handle.index].receives.count();
  if (pair.receives_posted - retired >= capacity.max_recv_wr) return ENOMEM;
  const PendingRequests::Entry entry{request.id, verbs::WcOpcode::receive};
  if (is_ended_) {
    ++pair.receives_posted;
    flush(pair, true, entry);
    return 0;
  }
  const PairRequest plain{.id = request.id,
                          .object = pair.handle.index,
                          .generation = pair.handle.generation,
                          .kind = std::to_underlying(PairRequest::Kind::post_receive),
                          .pieces = static_cast<std::uint8_t>(request.sges.size())};
  if (!receives_.push(plain, std::as_bytes(request.sges))) return EAGAIN;
  ++pair.receives_posted;
  pair.receives.push(entry);
  return 0;
}

// The host engine looks into the ring before it drops or refuses a message for want of a receive
// (posted_receives.hpp). So a receive counts from the moment it is in the ring.
int HostPairs::post_receive(qp::PairHandle handle, std::span<const verbs::ReceiveRequest> requests,
                            std::size_t& taken) {
  taken = 0;
  std::unique_lock lock(mutex_);
  const auto find_open = [&] {
    ClientPair* const pair = find(handle);
    return pair == nullptr || pair->plan.has_shared_receives || pair->state() == QpState::reset ? nullptr : pair;
  };
  ClientPair* pair = find_open();
  if (pair == nullptr) return EINVAL;
  int error = 0;
  while (taken < requests.size() && error == 0) {
    error = post(*pair, requests[taken]);
    if (error == 0) ++taken;
    if (error != EAGAIN) continue;
    wait_for_room(lock, receives_, kElementsMost);
    pair = find_open();
    error = pair == nullptr ? EINVAL : 0;
  }
  if (taken != 0) receives_.wake();
  return error;
}

// The shared page tells how many receives were consumed. If that is not current, asks the host engine, which then
// writes the present number.
int HostPairs::post_to_receive_queue(qp::ReceiveQueueHandle handle, std::span<const verbs::ReceiveRequest> requests,
                                     std::size_t& taken) {
  taken = 0;
  bool has_asked = false;
  std::unique_lock lock(mutex_);
  int error = 0;
  while (error == 0 && taken < requests.size()) {
    ClientQueue* const queue = find_queue(handle);
    const verbs::ReceiveRequest& request = requests[taken];
    if (queue == nullptr || request.sges.size() > queue->plan.sges) {
      error = EINVAL;
    } else if (queue->posted - queue->taken < queue->plan.depth) {
      const PairRequest plain{.id = request.id,
                              .object = handle.slot,
                              .generation = handle.generation,
                              .kind = std::to_underlying(PairRequest::Kind::post_to_queue),
                              .pieces = static_cast<std::uint8_t>(request.sges.size())};
      if (is_ended_ || receives_.push(plain, std::as_bytes(request.sges))) {
        ++queue->posted;
        ++taken;
      } else {
        wait_for_room(lock, receives_, kElementsMost);
      }
    } else if (const std::uint32_t known = page().taken[handle.slot].load(std::memory_order_acquire);
               known != queue->taken) {
      queue->taken = known;
    } else if (has_asked || is_ended_) {
      error = ENOMEM;
    } else {
      has_asked = true;
      lock.unlock();
      (void)receive_queue_facts(handle);
      lock.lock();
    }
  }
  if (taken != 0) receives_.wake();
  return error;
}

}  // namespace fairlead::host
