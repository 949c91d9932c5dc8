#include "tools/perf/stamp.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace fairlead::tools {
namespace {

TEST(PerfStamp, TellsItsNumber) {
  for (const std::size_t size : {8u, 64u, 512u, 519u, 520u, 65'536u}) {
    std::vector<std::byte> bytes(size);
    write_stamps(bytes, 77);
    EXPECT_EQ(read_stamps(bytes), 77u) << size;
  }
}

TEST(PerfStamp, APieceThatIsStaleOrMisplacedShows) {
  std::vector<std::byte> bytes(4096), older(4096);
  write_stamps(older, 6);
  for (std::size_t at = 0; at < bytes.size(); at += 1024) {
    write_stamps(bytes, 7);
    std::copy_n(older.begin() + at, 1024, bytes.begin() + at);
    EXPECT_EQ(read_stamps(bytes), std::nullopt) << at;
  }
  write_stamps(bytes, 7);
  std::copy_n(bytes.begin(), 1024, bytes.begin() + 1024);
  EXPECT_EQ(read_stamps(bytes), std::nullopt);
}

TEST(PerfStamp, TooLittleCarriesNone) {
  std::vector<std::byte> bytes(7);
  write_stamps(bytes, 7);
  EXPECT_EQ(read_stamps(bytes), 0u);
}

}  // namespace
}  // namespace fairlead::tools
