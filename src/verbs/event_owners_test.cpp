#include "verbs/event_owners.hpp"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <cerrno>

namespace fairlead::verbs {
namespace {

class EventOwnersTest : public testing::Test {
 protected:
  void produce(std::uint64_t owner) { ASSERT_TRUE(stream_.produce({qp::Notice::kCompletion, owner})); }
  /// Returns the cookie of the next event's owner; 0 if there is none.
  std::uint64_t next() {
    std::uint64_t cookie = 0;
    const auto notice = owners_.get(stream_, cookie);
    if (notice) owners_.acknowledge(notice->cookie, 1);
    EXPECT_TRUE(notice || notice.error().system_errno == EAGAIN);
    return notice ? cookie : 0;
  }
  bool is_readable() {
    eventfd_t count = 0;
    if (::eventfd_read(stream_.descriptor(), &count) != 0) return false;
    ::eventfd_write(stream_.descriptor(), count);
    return true;
  }

  qp::NoticeStream stream_{base::FileDescriptor(::eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK))};
  EventOwners owners_;
  const std::uint64_t gone_ = owners_.add(10), stays_ = owners_.add(20), other_ = owners_.add(30);
};

TEST_F(EventOwnersTest, NoticesOfOthersStayInOrder) {
  for (const std::uint64_t owner : {gone_, stays_, gone_, other_, gone_, stays_}) produce(owner);
  owners_.remove(gone_, stream_);
  produce(other_);
  for (const std::uint64_t cookie : {20u, 30u, 20u}) EXPECT_EQ(next(), cookie);
  EXPECT_TRUE(is_readable());
  EXPECT_EQ(next(), 30u);
  EXPECT_FALSE(is_readable());
  EXPECT_EQ(next(), 0u);
}

TEST_F(EventOwnersTest, TheDescriptorCountsNoNoticeThatIsGone) {
  produce(gone_);
  produce(gone_);
  owners_.remove(gone_, stream_);
  EXPECT_FALSE(is_readable());
}

// A thread in get() has read the count of the notice that is discarded. It must not take that of a later one.
TEST_F(EventOwnersTest, ACountThatAThreadHasReadAlreadyIsDiscardedThere) {
  produce(gone_);
  eventfd_t read_by_thread = 0;
  ASSERT_EQ(::eventfd_read(stream_.descriptor(), &read_by_thread), 0);
  owners_.remove(gone_, stream_);
  ::eventfd_write(stream_.descriptor(), read_by_thread);  // get() reads it as that thread did
  EXPECT_EQ(next(), 0u);
  produce(stays_);
  EXPECT_EQ(next(), 20u);
  EXPECT_FALSE(is_readable());
}

}  // namespace
}  // namespace fairlead::verbs
