#pragma once
// The processes that a console has started, and their output on its way to the console's own, in whole lines. Nothing
// here waits: what the console's output does not take at once stays here, and as long as it does nothing more is read
// from the processes. So a reader that stops holds up those who write, and never the console.

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
  base::FileDescriptor process;  // pidfd: names this process and no later one; not open where the kernel has none
  struct Output {
    base::FileDescriptor from;  // a pipe; not open at its end
    std::string line;           // without its end yet
  };
  std::array<Output, 2> outputs;  // standard output, standard error
  bool has_ended = false;
  std::optional<siginfo_t> how{};  // as waitid() tells it; none if somebody else has asked before us
};

/// One of the console's own outputs.
class Outlet {
 public:
  explicit Outlet(int to) : to_(to) {}
  void put(std::string_view text);
  bool is_waiting() const { return !waiting_.empty(); }
  /// A pipe that nobody reads any more.
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
  /// A line of the console's own, after what the processes have written.
  void say(std::string_view line) { outlets_[1].put(line); }

  /// Adds what there is to look for.
  void watch(std::vector<pollfd>& looks) const;
  /// After a look: carries output on, and learns who has ended.
  void serve();
  /// The next that has ended, once; null if there is none. Until the next call of another function.
  const Child* take_ended();
  /// Waits for the end of a process, if it is ours, at most so long.
  void wait_for_end_of(int pid, int milliseconds);
  void kill_all();
  std::string how_it_ended(int pid) const;
  /// Whether anything may still come, or has not been written.
  bool has_output() const;
  bool has_lost_reader() const { return outlets_[0].has_lost_reader(); }

 private:
  void carry(Child::Output& output, Outlet& to);
  static bool reap(Child& child);
  void note_end(Child& child);

  std::vector<Child> all_;
  std::size_t told_ = 0;  // of ended_
  std::vector<std::size_t> ended_;
  std::array<Outlet, 2> outlets_{Outlet(1), Outlet(2)};
};

}  // namespace fairlead::amudp
