#pragma once
// The simulator's findings. A run ends with the first one, because later ones follow from it.

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

namespace fairlead::sim {

class Findings {
 public:
  template <typename... Arguments>
  void add(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    if (!first_) first_ = fmt::format(text, std::forward<Arguments>(arguments)...);
  }

  bool is_clean() const { return !first_; }
  const std::optional<std::string>& first() const { return first_; }

 private:
  std::optional<std::string> first_;
};

/// Adds a finding unless the condition holds.
#define SIM_CHECK(findings, condition, ...) \
  do {                                      \
    if (!(condition)) [[unlikely]]          \
      (findings).add(__VA_ARGS__);          \
  } while (false)

}  // namespace fairlead::sim
