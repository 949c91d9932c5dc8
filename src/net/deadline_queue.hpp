#pragma once
// Queued buffers that have a deadline, the earliest first. O(log n) without allocation: the links lie in the buffers.

#include <boost/intrusive/set.hpp>

#include "net/buffer_state.hpp"

namespace fairlead::net {

class DeadlineQueue {
 public:
  void add(BufferState& buffer) { buffers_.insert(buffer); }
  /// No effect on a buffer that is not in here.
  void remove(BufferState& buffer) {
    if (buffer.deadline_hook.is_linked()) buffers_.erase(buffers_.iterator_to(buffer));
  }
  bool is_empty() const { return buffers_.empty(); }
  Instant earliest() const { return buffers_.empty() ? kNever : buffers_.begin()->deadline; }
  /// Takes out the buffer with the earliest deadline if that is not later than `now`, else null.
  BufferState* take_expired(Instant now) {
    if (buffers_.empty() || buffers_.begin()->deadline > now) return nullptr;
    BufferState& buffer = *buffers_.begin();
    buffers_.erase(buffers_.begin());
    return &buffer;
  }

 private:
  struct DeadlineOf {
    using type = Instant;
    const Instant& operator()(const BufferState& buffer) const { return buffer.deadline; }
  };
  using Hook = boost::intrusive::member_hook<BufferState, BufferState::DeadlineHook, &BufferState::deadline_hook>;
  boost::intrusive::multiset<BufferState, Hook, boost::intrusive::key_of_value<DeadlineOf>,
                             boost::intrusive::constant_time_size<false>>
      buffers_;
};

}  // namespace fairlead::net
