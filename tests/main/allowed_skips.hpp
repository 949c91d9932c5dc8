#pragma once
// Which tests may be skipped, and why (tests/allowed_skips.txt): a line each, NAME: REASON, where the name may end in
// `*`. A test that is skipped for another reason than the one written there is not allowed to be.

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
