#pragma once
// A callback that destroys a buffer while its final event is being told on another thread waits for that callback to
// end. If that one waits for ours in the same way, itself or over others, nobody would ever go on. So who waits for
// what is known, and one who closes such a circle does not wait: the callback that it meant still runs then.

#include <vector>

#include "net/buffer_state.hpp"

namespace fairlead::net {

class TellingWait {
 public:
  /// The calling thread is in a callback, and waits until nobody tells the buffer.
  explicit TellingWait(const BufferState& buffer);
  ~TellingWait();
  TellingWait(const TellingWait&) = delete;
  TellingWait& operator=(const TellingWait&) = delete;

  /// Whoever tells it waits for us.
  bool is_in_vain() const;

 private:
  const Machine* teller() const { return buffer_.domain->teller_of(buffer_); }
  bool is_of(const Machine* machine) const;

  const BufferState& buffer_;
  std::vector<const Machine*> turns_;  // whose callbacks the thread is in
};

}  // namespace fairlead::net
