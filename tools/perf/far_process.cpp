#include "tools/perf/far_process.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace fairlead::tools {

Result<ChildProcess> start_far_process(const PerfControl& control, const PerfPlace& place) {
  const int descriptor = control.descriptor();
  std::vector<std::string> words{
      "/proc/self/exe", "perf-far", std::to_string(descriptor), place.host, "--cpu", std::to_string(place.cpu),
  };
  for (const auto& [name, value] : place.engine)
    words.insert(words.end(), {"--set", fmt::format("{}={}", name, value)});
  ChildProcess process(words, {.kept = descriptor, .is_captured = false});
  if (process.obstacle() != nullptr) return std::unexpected(*process.obstacle());
  return process;
}

}  // namespace fairlead::tools
