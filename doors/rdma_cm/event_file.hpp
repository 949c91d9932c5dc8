#pragma once
// An open file of /dev/infiniband/rdma_cm. The program holds one end of a socket pair, which contains one byte per
// waiting event. So poll, epoll and select behave as with the kernel, and the kernel itself handles O_NONBLOCK and dup.
// The other end detects when the last copy closes, however that happens.

#include <rdma/rdma_user_cm.h>
#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <memory>

#include "base/file_descriptor.hpp"

namespace fairlead::rdma_cm {

struct Id;
struct Membership;

struct Pending {
  std::shared_ptr<Id> id;     // the id that the event belongs to; for a request: the listener
  std::shared_ptr<Id> child;  // for a request: the id created for it
  rdma_ucm_event_resp answer{};
  std::shared_ptr<Membership> membership{};  // for a join
};

class EventFile {
 public:
  /// Opens a file and sets `descriptor` to the program's end. Returns null with errno on failure.
  static std::shared_ptr<EventFile> open(int flags, int& descriptor);

  ino_t inode() const { return inode_; }
  int far_end() const { return far_end_.get(); }
  /// Adds the file to the epoll set `poll`: far_end() gets an event when all copies of the program's end are closed.
  void watch_close(int poll) const;
  /// Returns whether all copies are closed.
  bool is_closed() const;

  void push(Pending pending);
  /// Removes surplus bytes, for which no event waits any more. `descriptor` is a program's end.
  void settle(int descriptor);

  std::deque<Pending> events;

 private:
  base::FileDescriptor far_end_;
  ino_t inode_ = 0;
  std::size_t bytes_ = 0;  // bytes in the socket
};

}  // namespace fairlead::rdma_cm
