#pragma once
// The tests that may be skipped, with reasons (tests/allowed_skips.txt). Each line is NAME: REASON; NAME may end in
// `*`. A test may be skipped only for the reason in its line.

#include <string>
#include <string_view>
#include <vector>

#include <fairlead/error.hpp>

namespace fairlead::tests {

class AllowedSkips {
 public:
  static Result<AllowedSkips> parse(std::string_view text);
  static Result<AllowedSkips> of_file(const std::string& path);

  bool allows(std::string_view test, std::string_view reason) const;

 private:
  struct Row {
    std::string test, reason;
  };
  std::vector<Row> rows_;
};

}  // namespace fairlead::tests
