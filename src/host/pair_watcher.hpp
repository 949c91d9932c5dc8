#pragma once
// The thread of an application that waits for what the host engine has to tell its sleepers: it moves news of queue
// pairs to the streams that they belong to, whose descriptors wake whoever sleeps there.
//
// Memory that is moved must not change meanwhile, so all of them stand still for that (AllWatchersStopped), in a system
// call that writes to nothing but their own stacks.

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
  /// What it does: announces its sleep, and takes what has come. False: there will be nothing more.
  using Look = std::function<bool()>;

  static Result<std::unique_ptr<PairWatcher>> start(int descriptor, Look look);
  ~PairWatcher();
  PairWatcher(const PairWatcher&) = delete;
  PairWatcher& operator=(const PairWatcher&) = delete;

 private:
  friend class AllWatchersStopped;

  /// What is said by a write to an eventfd.
  struct Signals {
    base::FileDescriptor stop;     // to the thread: stand still
    base::FileDescriptor stopped;  // by the thread
    base::FileDescriptor go;       // to the thread: go on, or end
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

/// While it lives no watcher of this process runs.
class AllWatchersStopped {
 public:
  AllWatchersStopped();
  ~AllWatchersStopped();
  AllWatchersStopped(const AllWatchersStopped&) = delete;
  AllWatchersStopped& operator=(const AllWatchersStopped&) = delete;
  /// Whether the caller is the only other thread of the process.
  bool is_alone() const;
};

}  // namespace fairlead::host
