#include "onesided/shared_tables.hpp"

#include <gtest/gtest.h>

namespace fairlead::onesided {
namespace {

// All peers of the owner can write to the tables.
TEST(SharedTables, ARecordHoldsWhateverPeersHadWrittenOverItsVersion) {
  SharedRecord<SharedRegion> record;
  auto& version = reinterpret_cast<std::atomic<std::uint64_t>&>(record);
  PublishCount shows;
  record.publish({.key = 1}, shows);
  SharedRegion seen;
  for (const std::uint64_t lie : {1ULL, 2ULL, 3ULL, ~0ULL, ~1ULL}) {
    version.store(lie);
    record.publish({.key = 2}, shows);
    ASSERT_TRUE(record.read(seen)) << lie;
    EXPECT_EQ(seen.key, 2u);
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
