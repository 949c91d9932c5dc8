#include "tools/doctor/finding.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace fairlead::tools {

std::string_view word_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::good:
      return "ok";
    case Verdict::note:
      return "note";
    case Verdict::trouble:
      return "TROUBLE";
  }
  return {};
}

void print_findings(const Findings& findings) {
  for (const Finding& one : findings) {
    fmt::print("{:<8} {:<12} {}\n", word_of(one.verdict), one.topic, one.text);
    if (!one.remedy.empty()) fmt::print("{:<21} -> {}\n", "", one.remedy);
  }
}

bool is_well(const Findings& findings) {
  return std::ranges::none_of(findings, [](const Finding& one) { return one.verdict == Verdict::trouble; });
}

}  // namespace fairlead::tools
