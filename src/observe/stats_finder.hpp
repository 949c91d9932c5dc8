#pragma once
// Finds the engines of this host that have a statistics page (observe/stats_page.hpp), among the descriptors of all
// processes that the kernel lets us inspect: those of our user. A process that has ended has none.

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

/// An engine of a process. Its page is opened for each access, since our descriptors might run out.
class FoundStats {
 public:
  /// `descriptor`: the process's descriptor of the file with this inode number.
  FoundStats(pid_t pid, std::string program, int descriptor, ino_t inode)
      : pid_(pid), program_(std::move(program)), descriptor_(descriptor), inode_(inode) {}

  pid_t pid() const { return pid_; }
  const std::string& program() const { return program_; }
  /// Asks the engine for new figures, and for its flights if wanted. Returns false if it cannot be asked.
  bool ring(bool wants_flights, base::Instant until);
  /// Returns whether the engine has answered the last ring().
  bool has_answered() const;
  /// `until`: as in read_stats().
  Result<StatsView> read(base::Instant until) const { return read_stats(open().get(), until); }

 private:
  /// Returns a closed descriptor if the page does not exist any more.
  base::FileDescriptor open() const;

  pid_t pid_;
  std::string program_;
  int descriptor_;
  ino_t inode_;
  bool wants_flights_ = false;
  std::uint64_t publications_seen_ = 0, flights_seen_ = 0;
};

/// Finds the engines of one process, or of all, in the order of processes. Pages that a child inherited from its parent
/// are not the child's.
std::vector<FoundStats> find_stats(std::optional<pid_t> only = std::nullopt);

/// The answer of one engine; all are asked first, and then waited for together.
struct StatsAnswer {
  FoundStats* of = nullptr;
  bool is_fresh = false;  // false: the process is stopped or busy, and these are older figures
  Result<StatsView> view;
};
std::vector<StatsAnswer> ask_stats(std::span<FoundStats> found, bool wants_flights, base::Duration patience);

}  // namespace fairlead::observe
