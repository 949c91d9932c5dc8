#pragma once
// The engines of this host that show themselves (observe/stats_page.hpp): looked for among the descriptors of all
// processes that the kernel lets us look at, which are those of our user. A process that has ended has none.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fairlead/error.hpp>

#include "base/file_descriptor.hpp"
#include "base/time.hpp"
#include "observe/stats_view.hpp"

namespace fairlead::observe {

/// One engine of a process. Its page is opened for each look: descriptors of ours would run out.
class FoundStats {
 public:
  /// `descriptor` is the process's, and leads to the file of that number.
  FoundStats(pid_t pid, std::string program, int descriptor, ino_t inode)
      : pid_(pid), program_(std::move(program)), descriptor_(descriptor), inode_(inode) {}

  pid_t pid() const { return pid_; }
  const std::string& program() const { return program_; }
  /// Asks the engine for new figures, or for its flights, too. False if it cannot be asked.
  bool ring(bool wants_flights, base::Instant until);
  /// Whether it has answered the last ring.
  bool has_answered() const;
  /// `until`: as in read_stats().
  Result<StatsView> read(base::Instant until) const { return read_stats(open().get(), until); }

 private:
  /// Closed if it is not there any more.
  base::FileDescriptor open() const;

  pid_t pid_;
  std::string program_;
  int descriptor_;
  ino_t inode_;
  bool wants_flights_ = false;
  std::uint64_t publications_seen_ = 0, flights_seen_ = 0;
};

/// Of one process, or of all; ordered by process. Those of a parent that a child has inherited are not the child's.
std::vector<FoundStats> find_stats(std::optional<pid_t> only = std::nullopt);

/// What the engines say, asked all at once and waited for together.
struct StatsAnswer {
  FoundStats* of = nullptr;
  bool is_fresh = false;  // else the process is stopped, or busy: what it said before
  Result<StatsView> view;
};
std::vector<StatsAnswer> ask_stats(std::span<FoundStats> found, bool wants_flights, base::Duration patience);

}  // namespace fairlead::observe
