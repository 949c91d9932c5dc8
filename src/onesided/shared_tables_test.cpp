#include "onesided/shared_tables.hpp"

#include <gtest/gtest.h>

namespace fairlead::onesided {
namespace {

// All peers of the owner can write to the tables.
TEST(SharedTables, ARecordHoldsWhateverPeersHadWrittenOverItsVersion) {
  SharedRecord<SharedRegion> record;
  auto& version = reinterpret_cast<std::atomic<std::uint64_t>&>(record);
  PublishCount shows;
  std::uint32_t round = 1;
  record.publish({.key = round, .offset = round}, shows);
  SharedRegion seen;
  for (const std::uint64_t lie : {1ULL, 2ULL, 3ULL, ~0ULL, ~1ULL}) {
    version.store(lie);
    ++round;  // no round repeats a value, so a stale record shows
    record.publish({.key = round, .offset = 1000 + round}, shows);
    ASSERT_TRUE(record.read(seen)) << lie;
    EXPECT_EQ(seen.key, round);
    EXPECT_EQ(seen.offset, 1000 + round);
  }
}

TEST(SharedTables, NoVersionComesTwice) {
  SharedRecord<SharedRegion> record;
  auto& version = reinterpret_cast<std::atomic<std::uint64_t>&>(record);
  PublishCount shows;
  record.publish({.key = 1}, shows);
  const std::uint64_t first = version.load();
  version.store(first - 2);
  record.publish({.key = 2}, shows);
  EXPECT_NE(version.load(), first) << "who reads the first one meanwhile would take a mixture of both";
}

}  // namespace
}  // namespace fairlead::onesided
