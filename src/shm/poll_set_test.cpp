#include "shm/poll_set.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <array>

namespace fairlead::shm {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

TEST(PollSet, NamesThoseThatAreReadableAndWatched) {
  PollSet set;
  EXPECT_FALSE(set.is_open());
  set.open();
  ASSERT_TRUE(set.is_open());
  const base::FileDescriptor one(::eventfd(1, EFD_NONBLOCK)), two(::eventfd(0, EFD_NONBLOCK));
  ASSERT_TRUE(set.add(one.get(), 11));
  ASSERT_TRUE(set.add(two.get(), 22));
  std::array<std::uint64_t, PollSet::kAtOnce> room;
  EXPECT_THAT(set.ready(room), ElementsAre(11));
  ::eventfd_write(two.get(), 1);
  EXPECT_THAT(set.ready(room), UnorderedElementsAre(11, 22));
  set.watch(one.get(), 11, false);
  EXPECT_THAT(set.ready(room), ElementsAre(22));
  set.watch(one.get(), 11, true);
  set.remove(two.get());
  EXPECT_THAT(set.ready(room), ElementsAre(11));
  set.remove(one.get());
  EXPECT_THAT(set.ready(room), IsEmpty());
  EXPECT_FALSE(set.add(-1, 33));
}

}  // namespace
}  // namespace fairlead::shm
