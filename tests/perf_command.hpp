#pragma once
// What the tests of `fairlead perf` share.

#include <sched.h>

#include <string>
#include <vector>

namespace fairlead::tests {

/// Returns the command `fairlead perf ...`.
inline std::vector<std::string> perf_words(const std::vector<std::string>& more) {
  std::vector<std::string> words{FAIRLEAD_COMMAND, "perf"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Returns whether this process may use processors 0 and 1.
inline bool has_two_processors() {
  cpu_set_t ours;
  CPU_ZERO(&ours);
  ::sched_getaffinity(0, sizeof ours, &ours);
  return CPU_ISSET(0, &ours) && CPU_ISSET(1, &ours);
}

}  // namespace fairlead::tests
