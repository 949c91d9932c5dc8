#pragma once
// Simulates a kernel that refuses: the N-th system call of one kind in this process fails, with an error from its
// manual page. Calls by the library and by this program count, because this program's functions replace those of the C
// library.

#include <cstdint>
#include <span>
#include <string>

namespace fairlead::tests {

enum class Call : std::uint8_t {
  socket,
  socketpair,
  accept,
  bind,
  connect,
  listen,
  setsockopt,
  getsockopt,
  getsockname,
  getifaddrs,
  epoll_create,
  epoll_ctl,
  eventfd,
  open,
  memfd_create,
  dup,
  fcntl,
  ftruncate,
  fallocate,
  pwrite,
  mmap,
  mremap,
  madvise,
  mprotect,
  sendmsg,
  send,
  sendto,
  descriptors,  // recvmsg(): there was no room for the descriptors sent with it
  read_process,
  write_process,
  thread,
};

/// One way in which a call fails.
struct Refusal {
  Call call;
  const char* name;
  int error;
};
std::span<const Refusal> all_refusals();

class FailingKernel {
 public:
  /// Starts counting and makes the call with that number fail. The first call has number 1.
  static void arm(const Refusal& refusal, unsigned number);
  static void disarm();
  /// The call stack of the refused call, as function names; empty if no call was refused.
  static std::string refused();
};

}  // namespace fairlead::tests
