#pragma once
// Detects deadlock between callbacks. A callback that destroys a buffer waits while another thread runs that buffer's
// final callback. If that callback waits for ours in turn, directly or through others, neither would ever return. Each
// wait is therefore registered. A wait that would close a cycle is skipped; the other callback then still runs.

#include <vector>

#include "net/buffer_state.hpp"

namespace fairlead::net {

class TellingWait {
 public:
  /// The calling thread is in a callback, and waits until no machine delivers the buffer's final event.
  explicit TellingWait(const BufferState& buffer);
  ~TellingWait();
  TellingWait(const TellingWait&) = delete;
  TellingWait& operator=(const TellingWait&) = delete;

  /// Returns whether the delivering thread waits for this one.
  bool is_in_vain() const;

 private:
  const Machine* teller() const { return buffer_.domain->teller_of(buffer_); }
  bool is_of(const Machine* machine) const;

  const BufferState& buffer_;
  std::vector<const Machine*> turns_;  // the machines whose callbacks this thread is in
};

}  // namespace fairlead::net
