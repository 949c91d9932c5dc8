#include "tools/perf/far_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>

#include <cstring>
#include <string>
#include <vector>

extern char** environ;  // of the C library

namespace fairlead::tools {

Result<pid_t> spawn_far(const PerfControl& control, const PerfPlace& place) {
  // The far end of the control keeps its descriptor number in the new program.
  const int descriptor = control.descriptor();
  std::vector<std::string> words{
      "/proc/self/exe", "perf-far", std::to_string(descriptor), place.host, "--cpu", std::to_string(place.cpu),
  };
  for (const auto& [name, value] : place.engine)
    words.insert(words.end(), {"--set", fmt::format("{}={}", name, value)});
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::fcntl(descriptor, F_SETFD, 0);
  pid_t process = -1;
  const int number = ::posix_spawn(&process, words.front().c_str(), nullptr, nullptr, arguments.data(), environ);
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  if (number == 0) return process;
  return std::unexpected(
      Error{Status::system, number, fmt::format("cannot start a second process: {}", std::strerror(number))});
}

}  // namespace fairlead::tools
