#pragma once
// One line of `fairlead doctor`.

#include <string>
#include <vector>

namespace fairlead::tools {

enum class Verdict {
  good,
  note,     // works, but could work better; or a fact to compare with another host
  trouble,  // something does not work
};

struct Finding {
  Verdict verdict = Verdict::good;
  std::string topic;  // one word
  std::string text;
  std::string remedy;  // what to do about it; may be empty
};

using Findings = std::vector<Finding>;

}  // namespace fairlead::tools
