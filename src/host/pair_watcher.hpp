#pragma once
// An application's thread that waits for the host engine's events on behalf of sleepers. It moves events of queue pairs
// to their streams, whose descriptors wake the sleepers.
//
// Memory must not change while it is moved to the shared segment. So all watchers stop meanwhile (AllWatchersStopped),
// in a system call that writes only to their own stacks.

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include <fairlead/error.hpp>

#include "base/file_descriptor.hpp"
#include "base/thread.hpp"

namespace fairlead::host {

class PairWatcher {
 public:
  /// The work: announces its sleep, and takes what has come. Returns false if nothing more will come.
  using Look = std::function<bool()>;

  static Result<std::unique_ptr<PairWatcher>> start(int descriptor, Look look);
  ~PairWatcher();
  PairWatcher(const PairWatcher&) = delete;
  PairWatcher& operator=(const PairWatcher&) = delete;

 private:
  friend class AllWatchersStopped;

  /// Eventfds for signalling:
  struct Signals {
    base::FileDescriptor stop;     // to the thread: stop
    base::FileDescriptor stopped;  // from the thread: it has stopped
    base::FileDescriptor go;       // to the thread: continue, or end
  };

  PairWatcher(int descriptor, Look look, Signals signals)
      : descriptor_(descriptor), look_(std::move(look)), signals_(std::move(signals)) {}
  void stop() const;
  void go_on() const;
  bool stand_still() const;
  void run();

  const int descriptor_;
  const Look look_;
  const Signals signals_;
  std::atomic<bool> is_ending_{false};
  base::Thread thread_;
};

/// While it lives, no watcher of this process runs.
class AllWatchersStopped {
 public:
  AllWatchersStopped();
  ~AllWatchersStopped();
  AllWatchersStopped(const AllWatchersStopped&) = delete;
  AllWatchersStopped& operator=(const AllWatchersStopped&) = delete;
  /// Returns whether the process has no threads but the caller, the watchers and those of base::SlowCloser.
  bool is_alone() const;
};

}  // namespace fairlead::host
