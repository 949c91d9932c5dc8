// No class has more than 60 member functions.

#include "tests/class_sizes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace fairlead::tests {

std::ostream& operator<<(std::ostream& out, const ClassSize& size) {
  return out << size.name << " " << size.functions;
}
bool operator==(const ClassSize& one, const ClassSize& other) {
  return one.name == other.name && one.functions == other.functions;
}

namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

constexpr std::size_t kFunctionsMax = 60;

TEST(ClassSizes, NoneInTheTreeIsTooLarge) {
  const fs::path project = FAIRLEAD_SOURCE_FOLDER;
  std::size_t classes = 0;
  for (const char* folder : {"include", "src", "sim", "tools", "doors", "tests", "bench", "examples"}) {
    for (const auto& entry : fs::recursive_directory_iterator(project / folder)) {
      if (entry.path().extension() != ".hpp" && entry.path().extension() != ".cpp") continue;
      std::ifstream stream(entry.path());
      const std::string text{std::istreambuf_iterator<char>(stream), {}};
      for (const ClassSize& size : class_sizes(text)) {
        ++classes;
        const std::string name = fs::relative(entry.path(), project).string() + " " + size.name;
        EXPECT_LE(size.functions, kFunctionsMax) << name << ": split it into nouns, each with state of its own";
      }
    }
  }
  EXPECT_GT(classes, 500u);
}

TEST(ClassSizes, CountWhatIsDeclared) {
  EXPECT_THAT(class_sizes("class A {\n public:\n  A();\n  A(const A&) = delete;\n  ~A() = default;\n"
                          "  int one() const { return f({1, 2}); }\n  template <typename T>\n  void two(T&& t);\n"
                          "  A& operator=(const A&);\n private:\n  virtual void three() = 0;\n};\n"),
              ElementsAre(ClassSize{"A", 7}));
}

TEST(ClassSizes, CountNeitherDataNorFriendsNorTypes) {
  EXPECT_THAT(
      class_sizes("struct A {\n  int a = f(3), b{g(4)};\n  std::function<void(int)> call;\n"
                  "  static constexpr int kMost = most(5);\n  friend void h(A&);\n  using T = void (*)(int);\n"
                  "  static_assert(sizeof(int) == 4);\n  enum class Kind { x };\n  alignas(64) int line;\n};\n"),
      ElementsAre(ClassSize{"A", 0}));
}

TEST(ClassSizes, CountAConstructorWithAListOnce) {
  EXPECT_THAT(class_sizes("class A {\n  explicit A(int a) : a_{a}, b_(a) {}\n  int a_, b_;\n};\n"),
              ElementsAre(ClassSize{"A", 1}));
}

TEST(ClassSizes, CountClassesInClassesByThemselves) {
  EXPECT_THAT(
      class_sizes(
          "namespace n {\nclass A : public B<int> {\n  struct In { void f(); void g() {} } in;\n  int h();\n};\n"
          "struct A::State { void f(); };\n}\n"),
      ElementsAre(ClassSize{"A::In", 2}, ClassSize{"A", 1}, ClassSize{"A::State", 1}));
}

TEST(ClassSizes, AreNotMisledByCommentsAndLiterals) {
  EXPECT_THAT(class_sizes("#define X class B { \\\n void f();\nclass A {  // void f();\n  /* void g(); */\n"
                          "  const char* a = \"{ void h();\";\n  char b = '{';\n  int c = 1'000;\n"
                          "  const char* d = R\"x(void i(); \" {)x\";\n  void j();\n};\n"),
              ElementsAre(ClassSize{"A", 1}));
}

}  // namespace
}  // namespace fairlead::tests
