#include "tools/top/engines.hpp"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include <fmt/format.h>

namespace fairlead::tools {
namespace {

constexpr auto kAnswerPatience = std::chrono::milliseconds(500);

Error nothing_in(pid_t pid) {
  const std::string folder = fmt::format("/proc/{}", pid);
  if (::access(folder.c_str(), F_OK) != 0)
    return {Status::not_available, ENOENT,
            fmt::format("no process {} is here: `fairlead top` lists those with engines", pid)};
  if (::access((folder + "/fd").c_str(), R_OK) != 0) {
    return {Status::not_permitted, EPERM,
            fmt::format("process {} may not be looked at: it is another user's, or forbids it (set-user-id, "
                        "PR_SET_DUMPABLE)",
                        pid)};
  }
  return {Status::not_available, 0,
          fmt::format("process {} has no engine now: `fairlead top` lists those that have", pid)};
}

}  // namespace

Result<SeenEngines> look_at_engines(std::optional<pid_t> only, bool wants_flights) {
  auto found = observe::find_stats(only);
  if (only && found.empty()) return std::unexpected(nothing_in(*only));
  SeenEngines seen;
  for (observe::StatsAnswer& answer : observe::ask_stats(found, wants_flights, kAnswerPatience)) {
    const observe::FoundStats& of = *answer.of;
    if (answer.view)
      seen.engines.push_back({of.pid(), of.program(), answer.is_fresh, std::move(*answer.view)});
    else
      seen.unreadable.push_back({of.pid(), of.program(), std::move(answer.view.error())});
  }
  return seen;
}

}  // namespace fairlead::tools
