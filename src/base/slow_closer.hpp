#pragma once
// Closes descriptors in a thread of its own. What another process gave may hold up the one who closes it for as long as
// that process likes: a TCP socket that lingers, a file of a file system that its own program serves; or a connection,
// with such descriptors in what was not read.
//
// The thread is there only while there is something to close. It takes no signals, and touches nothing of the program.

#include <cstddef>
#include <memory>

#include "base/file_descriptor.hpp"

namespace fairlead::base {

class SlowCloser {
 public:
  SlowCloser();

  /// Any thread. Returns at once.
  void close(FileDescriptor descriptor);
  /// What is not closed yet.
  std::size_t left() const;

  /// Threads of this process that close, for whoever counts threads.
  static unsigned threads() noexcept;

 private:
  struct State;
  static void run(State& state);

  std::shared_ptr<State> state_;  // the thread's, too: it may outlive us
};

}  // namespace fairlead::base
