#pragma once
// The processes that a console has started. Forwards their output to the console's own, in whole lines. Nothing here
// blocks: output that the console cannot write at once stays here, and meanwhile nothing more is read from the
// processes. A reader that stops thus blocks the writers, but never the console.

#include <poll.h>
#include <signal.h>

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.hpp"

namespace fairlead::amudp {

struct Child {
  int pid = -1;
  base::FileDescriptor process;  // a pidfd, which names this process and no later one; closed if the kernel has none
  struct Output {
    base::FileDescriptor from;  // a pipe; closed at its end
    std::string line;           // an incomplete line
  };
  std::array<Output, 2> outputs;  // standard output and standard error
  bool has_ended = false;
  std::optional<siginfo_t> how{};  // as waitid() reports it; nullopt if another caller has reaped the process
};

/// One of the console's own outputs.
class Outlet {
 public:
  explicit Outlet(int to) : to_(to) {}
  void put(std::string_view text);
  bool is_waiting() const { return !waiting_.empty(); }
  /// Returns whether the output is a pipe without a reader.
  bool has_lost_reader() const { return has_lost_reader_; }
  int descriptor() const { return to_; }

 private:
  int to_;
  std::string waiting_;
  bool is_closed_ = false, has_lost_reader_ = false;
};

class Children {
 public:
  void add(Child child) { all_.push_back(std::move(child)); }
  /// Writes a line of the console itself, after the processes' pending output.
  void say(std::string_view line) { outlets_[1].put(line); }

  /// Adds the descriptors to poll.
  void watch(std::vector<pollfd>& looks) const;
  /// Call after a poll: forwards output, and detects processes that have ended.
  void serve();
  /// Returns the next process that has ended, each once; null if there is none. Valid until the next call of another
  /// function.
  const Child* take_ended();
  /// Waits for the end of a child process, up to a time limit.
  void wait_for_end_of(int pid, int milliseconds);
  void kill_all();
  std::string how_it_ended(int pid) const;
  /// Returns the exit code that a shell would report, 128 + N for an end by signal N; nullopt if it is not known.
  std::optional<int> exit_code_of(int pid) const;
  /// Returns whether output may still come or is not written yet.
  bool has_output() const;
  bool has_lost_reader() const { return outlets_[0].has_lost_reader(); }

 private:
  const siginfo_t* end_of(int pid) const;
  void carry(Child::Output& output, Outlet& to);
  static bool reap(Child& child);
  void note_end(Child& child);

  std::vector<Child> all_;
  std::size_t told_ = 0;  // the part of ended_ that take_ended() has returned
  std::vector<std::size_t> ended_;
  std::array<Outlet, 2> outlets_{Outlet(1), Outlet(2)};
};

}  // namespace fairlead::amudp
