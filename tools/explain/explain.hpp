#pragma once
// `fairlead explain`: the meaning of a status or a descriptor, for example from a log.

#include <string>
#include <string_view>
#include <vector>

#include <fairlead/error.hpp>

namespace fairlead::tools {

/// Explains a word. 128 hex digits are a buffer descriptor. Otherwise it is a status, by name ("silent", "peer silent",
/// "ETIMEDOUT") or errno number ("110", "-110"). Returns one line for each status that it may mean.
Result<std::string> explain(std::string_view word);

/// The meaning of a status, and the name and number of its errno.
struct StatusWord {
  std::string_view name;  // as in Status
  std::string errno_name;
  int number = 0;
  std::string_view sentence;
  std::string c_name;  // in <fairlead/net.h>
  int c_number = 0;
};
std::vector<StatusWord> status_words();

/// Returns all statuses as a table.
std::string explain_all();

}  // namespace fairlead::tools
