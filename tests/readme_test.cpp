// The program that the README shows is the example that is built and run.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
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

}  // namespace
