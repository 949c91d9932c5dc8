#include "tools/base/describe_failure.hpp"

#include <fmt/format.h>

namespace fairlead::tools {

std::string describe_failure(const net::TransferMachine& machine, const net::EndPoint& peer, Status status) {
  const std::string known = machine.describe(peer, status);
  const std::string text = fmt::format("{}{}{}", to_string(status), known.empty() ? "" : ": ", known);
  switch (status) {
    case Status::unreachable:
    case Status::silent:
    case Status::restarted:
    case Status::refused:
      if (!known.empty()) return text;  // it includes the remedy
      break;
    default:
      break;
  }
  return fmt::format("{}; `fairlead explain {}` tells more", text, to_string(status));
}

bool is_program_missing(net::PeerProblem problem) {
  using enum net::PeerProblem;
  return problem == never_heard || problem == nobody_listens || problem == no_machine;
}

}  // namespace fairlead::tools
