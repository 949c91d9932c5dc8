#pragma once
// One line of `fairlead doctor` or `fairlead run --check`.

#include <string>
#include <string_view>
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

std::string_view word_of(Verdict verdict);
/// Prints a line for each, and one for its remedy.
void print_findings(const Findings& findings);
/// Returns whether nothing is in trouble.
bool is_well(const Findings& findings);

}  // namespace fairlead::tools
