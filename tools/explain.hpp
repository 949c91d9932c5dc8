#pragma once
// `fairlead explain`: what a status or a descriptor means, for whoever finds one in a log.

#include <string>
#include <string_view>
#include <vector>

#include <fairlead/error.hpp>

namespace fairlead::tools {

/// 128 hex digits are a buffer descriptor: what it says. Else a status: by name ("silent", "peer silent", "ETIMEDOUT")
/// or number of the errno ("110", "-110"): the sentences of all statuses that it may stand for, a line each.
Result<std::string> explain(std::string_view word);

/// What a status means, and the name and number of its errno.
struct StatusWord {
  std::string_view name;  // as in Status
  std::string errno_name;
  int number = 0;
  std::string_view sentence;
};
std::vector<StatusWord> status_words();

/// All of them, as a table.
std::string explain_all();

}  // namespace fairlead::tools
