#pragma once
// One open file of /dev/infiniband/rdma_cm. The program holds one end of a socket pair: a byte waits in it for each
// event that waits here, so poll, epoll and select see what the kernel would show, O_NONBLOCK and dup are the kernel's
// own affair, and the other end sees the last copy close, however that happens.

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
  std::shared_ptr<Id> id;     // whose event it is; of a request the listener
  std::shared_ptr<Id> child;  // of a request: the id that was made for it
  rdma_ucm_event_resp answer{};
  std::shared_ptr<Membership> membership{};  // of a join
};

class EventFile {
 public:
  /// Sets `descriptor` to the program's end. Null with errno.
  static std::shared_ptr<EventFile> open(int flags, int& descriptor);

  ino_t inode() const { return inode_; }
  int far_end() const { return far_end_.get(); }
  /// `poll`, an epoll descriptor, has an event of far_end() when all copies of the program's end are closed.
  void watch_close(int poll) const;
  /// Whether they are.
  bool is_closed() const;

  void push(Pending pending);
  /// Takes the bytes out that no event stands behind any more. `descriptor` is a program's end.
  void settle(int descriptor);

  std::deque<Pending> events;

 private:
  base::FileDescriptor far_end_;
  ino_t inode_ = 0;
  std::size_t bytes_ = 0;  // in the socket
};

}  // namespace fairlead::rdma_cm
