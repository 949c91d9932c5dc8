#include "tests/include_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include <fmt/ranges.h>

namespace fairlead::tests {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::string_view kTable =
    "# a comment\n"
    "all <error>\n"
    "base\n"
    "wire base\n"
    "wire:tests engine/whole.hpp\n"
    "engine wire base\n"
    "net engine/core.hpp base <net>\n"
    "tests *\n";

IncludeTable table() {
  return IncludeTable::parse(kTable).value();
}

TEST(IncludeTable, TheTreeKeepsIt) {
  const fs::path project = FAIRLEAD_SOURCE_FOLDER;
  std::ifstream stream(project / "tests" / "include_table.txt");
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  const auto real = IncludeTable::parse(text);
  ASSERT_TRUE(real) << real.error().message;
  std::size_t files = 0;
  const auto violations = real->violations_below(project, files);
  EXPECT_GT(files, 10u);
  EXPECT_TRUE(violations.empty()) << fmt::format("{}", fmt::join(violations, "\n"));
}

TEST(IncludeTable, FindsAPlantedViolationInATree) {
  std::string folder = fs::temp_directory_path() / "fairlead_include_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  fs::create_directories(fs::path(folder) / "src" / "wire");
  std::ofstream(fs::path(folder) / "src" / "wire" / "frame.hpp") << "#pragma once\n#include \"engine/port.hpp\"\n";
  std::size_t files = 0;
  const auto violations = table().violations_below(folder, files);
  fs::remove_all(folder);
  EXPECT_EQ(files, 1u);
  EXPECT_THAT(violations, ElementsAre("src/wire/frame.hpp:2: wire may not include engine/port.hpp"));
}

TEST(IncludeTable, AllowsDownwardsOwnFolderAndPublicHeaders) {
  EXPECT_THAT(table().violations("src/engine/port.cpp",
                                 "#include \"engine/port.hpp\"\n#include \"wire/frame.hpp\"\n"
                                 "#include <fairlead/error.hpp>\n#include <queue>\n#include <net/if.h>\n#include "
                                 "<boost/intrusive/list.hpp>\n"),
              IsEmpty());
}

TEST(IncludeTable, ForbidsUpwards) {
  EXPECT_THAT(table().violations("src/base/time.cpp", "#include \"wire/frame.hpp\"\n"),
              ElementsAre("src/base/time.cpp:1: base may not include wire/frame.hpp"));
  EXPECT_THAT(table().violations("src/base/time.cpp", "  #  include <wire/frame.hpp>\n"),
              ElementsAre("src/base/time.cpp:1: base may not include wire/frame.hpp"));
}

TEST(IncludeTable, ARowMayNameOneFile) {
  EXPECT_THAT(table().violations("src/net/domain.cpp", "#include \"engine/core.hpp\"\n"), IsEmpty());
  EXPECT_THAT(table().violations("src/net/domain.cpp", "#include \"engine/port.hpp\"\n"),
              ElementsAre("src/net/domain.cpp:1: net may not include engine/port.hpp"));
}

TEST(IncludeTable, AFacesHeadersAreForTheRowsThatNameThem) {
  EXPECT_THAT(
      table().violations("src/net/domain.cpp", "#include <fairlead/net.hpp>\n#include <fairlead/net/event.hpp>\n"),
      IsEmpty());
  EXPECT_THAT(table().violations("src/net/domain.cpp", "#include <fairlead/verbs/types.hpp>\n"),
              ElementsAre("src/net/domain.cpp:1: net may not include fairlead/verbs/types.hpp"));
  EXPECT_THAT(table().violations("src/engine/port.cpp", "#include <fairlead/error.hpp>\n#include <fairlead/net.hpp>\n"),
              ElementsAre("src/engine/port.cpp:2: engine may not include fairlead/net.hpp"));
}

TEST(IncludeTable, TestsMayHaveARowOfTheirOwn) {
  const std::string_view text = "#include \"engine/whole.hpp\"\n";
  EXPECT_THAT(table().violations("src/wire/frame_test.cpp", text), IsEmpty());
  EXPECT_THAT(table().violations("src/wire/frames_for_tests.hpp", text), IsEmpty());
  EXPECT_THAT(table().violations("src/wire/frame.cpp", text),
              ElementsAre("src/wire/frame.cpp:1: wire may not include engine/whole.hpp"));
}

TEST(IncludeTable, AFolderNeedsARow) {
  EXPECT_THAT(table().violations("src/extra/thing.cpp", ""),
              ElementsAre("src/extra/thing.cpp: folder extra has no row in the include table"));
}

TEST(IncludeTable, IncludesNameTheirFolder) {
  EXPECT_THAT(table().violations("src/wire/frame.cpp", "#include \"frame.hpp\"\n"),
              ElementsAre("src/wire/frame.cpp:1: write \"folder/file.hpp\" instead of \"frame.hpp\""));
  EXPECT_THAT(table().violations("src/wire/frame.cpp", "#include \"../base/time.hpp\"\n"),
              ElementsAre("src/wire/frame.cpp:1: write \"folder/file.hpp\" instead of \"../base/time.hpp\""));
}

TEST(IncludeTable, OnePublicHeaderIsForAsio) {
  EXPECT_THAT(table().violations("include/fairlead/net/asio.hpp", "#include <boost/asio/post.hpp>\n"), IsEmpty());
  EXPECT_THAT(table().violations("include/fairlead/net/asio.hpp", "#include <asio/post.hpp>\n"), IsEmpty());
  EXPECT_THAT(table().violations("include/fairlead/net/asio.hpp", "#include <boost/format.hpp>\n"),
              ElementsAre("include/fairlead/net/asio.hpp:1: a public header may include the standard library and "
                          "<fairlead/...> only, not boost/format.hpp"));
  EXPECT_THAT(table().violations("include/fairlead/net/event.hpp", "#include <boost/asio/post.hpp>\n"),
              ElementsAre("include/fairlead/net/event.hpp:1: a public header may include the standard library and "
                          "<fairlead/...> only, not boost/asio/post.hpp"));
  EXPECT_THAT(table().violations("include/fairlead/net.hpp", "#include <fairlead/net/asio.hpp>\n"),
              ElementsAre("include/fairlead/net.hpp:1: no header includes fairlead/net/asio.hpp, which needs Asio"));
}

TEST(IncludeTable, PublicHeadersForCStandAlone) {
  EXPECT_THAT(table().violations("include/fairlead/net.h",
                                 "#ifndef FAIRLEAD_NET_H\n#define FAIRLEAD_NET_H\n#include <stdint.h>\n"),
              IsEmpty());
  EXPECT_THAT(
      table().violations("include/fairlead/net.h", "#include <fairlead/net.hpp>\n#include <unistd.h>\n#define MAX 1\n"),
      ElementsAre("include/fairlead/net.h:1: a public header for C may include stdbool.h, stddef.h and stdint.h only, "
                  "not fairlead/net.hpp",
                  "include/fairlead/net.h:2: a public header for C may include stdbool.h, stddef.h and stdint.h only, "
                  "not unistd.h",
                  "include/fairlead/net.h:3: a macro of a public header begins with FAIRLEAD_"));
}

TEST(IncludeTable, PublicHeadersStandAlone) {
  EXPECT_THAT(table().violations("include/fairlead/net.hpp", "#include <expected>\n#include <fairlead/error.hpp>\n"),
              IsEmpty());
  EXPECT_THAT(table().violations("include/fairlead/net.hpp",
                                 "#include <sys/uio.h>\n#include \"base/time.hpp\"\n#include <fmt/format.h>\n"
                                 "#define FAIRLEAD_API\n"),
              testing::SizeIs(4));
}

TEST(IncludeTable, RefusesTwoRowsForOneFolder) {
  EXPECT_EQ(IncludeTable::parse("base\nbase wire\n").error().message, "two rows for folder base: keep one");
}

}  // namespace
}  // namespace fairlead::tests
