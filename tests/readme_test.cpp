// The program in the README is the example that is built and run.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

namespace {

std::string text_of(const char* path) {
  std::ifstream stream(std::filesystem::path(FAIRLEAD_SOURCE_FOLDER) / path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

TEST(Readme, ShowsTheExampleAsItIs) {
  const auto example = text_of("examples/hello.cpp");
  ASSERT_FALSE(example.empty());
  EXPECT_NE(text_of("README.md").find("```cpp\n" + example + "```\n"), std::string::npos)
      << "copy examples/hello.cpp into README.md";
}

// The programs in README's table must be targets of the demo's build command. `amudp/...` is excluded: the tests build
// it.
TEST(Readme, ShowsProgramsThatTheDemoHasBuilt) {
  const std::string readme = text_of("README.md"), demo = text_of("scripts/demo.sh");
  const auto compile = demo.find("  compile build ");
  ASSERT_NE(compile, std::string::npos);
  const std::string targets = demo.substr(compile, demo.find('\n', compile) - compile) + " ";
  const std::regex program("build/bin/([a-z_]+)([^a-z_/]|$)");
  int programs = 0;
  for (std::sregex_iterator found(readme.begin(), readme.end(), program), end; found != end; ++found, ++programs) {
    const std::string name = (*found)[1];
    EXPECT_NE(targets.find(name == "fairlead" ? " fairlead_command " : " " + name + " "), std::string::npos) << name;
  }
  EXPECT_GT(programs, 5);
}

}  // namespace
