// Device files: what the table of descriptors knows, and when a close wakes the service.
#include "doors/rdma_cm/event_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file_descriptor.hpp"
#include "doors/rdma_cm/descriptor_table.hpp"

namespace fairlead::rdma_cm {
namespace {

// The wrapped calls would not recognise this descriptor, so open() must fail.
TEST(DeviceFile, HasANumberThatItsTableKnows) {
  EXPECT_FALSE(note_device_file(65536, 1));
  EXPECT_FALSE(note_device_file(-1, 1));
}

TEST(DeviceFile, WakesItsServiceOnlyByItsLastClose) {
  int descriptor = -1;
  const auto file = EventFile::open(O_RDWR, descriptor);
  ASSERT_TRUE(file);
  const base::FileDescriptor poll(::epoll_create1(EPOLL_CLOEXEC));
  base::FileDescriptor copy(::dup(descriptor));
  file->watch_close(poll.get());
  epoll_event event{};
  ASSERT_EQ(::send(descriptor, "", 1, 0), 1);  // bypasses write()
  EXPECT_EQ(::epoll_wait(poll.get(), &event, 1, 0), 0);
  ::close(descriptor);
  EXPECT_EQ(::epoll_wait(poll.get(), &event, 1, 0), 0);
  copy = {};
  EXPECT_EQ(::epoll_wait(poll.get(), &event, 1, 0), 1);
  EXPECT_EQ(event.data.fd, file->far_end());
}

}  // namespace
}  // namespace fairlead::rdma_cm
