#include "tools/base/text_table.hpp"

#include <gtest/gtest.h>

namespace fairlead::tools {
namespace {

TEST(TextTable, AlignsNamesToTheLeftAndFiguresToTheRight) {
  TextTable table({"queue", "adds", "note"});
  table.align_left(2);
  table.add({"mRECV", "7", "x"});
  table.add({"a", "12345", ""});
  table.add({"b"});
  EXPECT_EQ(table.to_string(),
            "queue   adds  note\n"
            "mRECV      7  x\n"
            "a      12345\n"
            "b\n");
}

}  // namespace
}  // namespace fairlead::tools
