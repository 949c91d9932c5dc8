#pragma once
// Closes descriptors in its own thread. Closing a descriptor from another process may block for as long as that process
// likes: a TCP socket that lingers, a file of a user-space file system, or a connection with such descriptors in unread
// messages.
//
// The thread runs only while there is something to close. It takes no signals, and touches nothing of the program.

#include <cstddef>
#include <memory>

#include "base/file_descriptor.hpp"

namespace fairlead::base {

class SlowCloser {
 public:
  SlowCloser();

  /// Any thread; returns at once.
  void close(FileDescriptor descriptor);
  /// Number of descriptors not closed yet.
  std::size_t left() const;

  /// Number of closing threads in this process, for code that counts threads.
  static unsigned threads() noexcept;

 private:
  struct State;
  static void run(State& state);

  std::shared_ptr<State> state_;  // shared with the thread, which may outlive this object
};

}  // namespace fairlead::base
