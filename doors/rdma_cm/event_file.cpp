#include "doors/rdma_cm/event_file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace fairlead::rdma_cm {

std::shared_ptr<EventFile> EventFile::open(int flags, int& descriptor) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return nullptr;
  auto file = std::make_shared<EventFile>();
  file->far_end_ = base::FileDescriptor(ends[1]);
  struct stat status{};
  if (::fstatat(ends[0], "", &status, AT_EMPTY_PATH) != 0) {
    ::close(ends[0]);
    return nullptr;
  }
  file->inode_ = status.st_ino;
  ::fcntl(ends[1], F_SETFL, O_NONBLOCK);
  if ((flags & O_NONBLOCK) != 0) ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  if ((flags & O_CLOEXEC) == 0) ::fcntl(ends[0], F_SETFD, 0);
  descriptor = ends[0];
  return file;
}

// epoll always reports a hang-up. It must not report readability: a program could write to the socket past our write(),
// nobody would read that, and it would wake the thread for ever.
void EventFile::watch_close(int poll) const {
  epoll_event event{.events = 0, .data = {.fd = far_end()}};
  ::epoll_ctl(poll, EPOLL_CTL_ADD, far_end(), &event);
}

bool EventFile::is_closed() const {
  pollfd poll{.fd = far_end_.get(), .events = 0, .revents = 0};
  return ::poll(&poll, 1, 0) == 1 && (poll.revents & POLLHUP) != 0;
}

// Sends one byte per event, so that an edge-triggered epoll sees each. If the socket is full, it is readable anyway.
void EventFile::push(Pending pending) {
  events.push_back(std::move(pending));
  if (::send(far_end_.get(), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1) ++bytes_;
}

void EventFile::settle(int descriptor) {
  char byte;
  while (bytes_ > events.size() && ::recv(descriptor, &byte, 1, MSG_DONTWAIT) == 1) --bytes_;
}

}  // namespace fairlead::rdma_cm
