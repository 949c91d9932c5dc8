#pragma once
// A kernel that refuses: of one kind of system call the N-th that this process makes fails, with an error that its
// manual knows. Those of the library and of this program count, which find the functions of this program before the C
// library's.

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
  descriptors,  // recvmsg(): what came with it had no room
  read_process,
  write_process,
  thread,
};

/// One way to refuse a call.
struct Refusal {
  Call call;
  const char* name;
  int error;
};
std::span<const Refusal> all_refusals();

class FailingKernel {
 public:
  /// Counts from now on, and refuses the call of that number, from 1 on.
  static void arm(const Refusal& refusal, unsigned number);
  static void disarm();
  /// Who was refused, as function names; empty if nobody was.
  static std::string refused();
};

}  // namespace fairlead::tests
