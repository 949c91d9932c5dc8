#include "tests/failing_calls/failing_kernel.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace fairlead::tests {
namespace {

constexpr Refusal kRefusals[] = {
    {Call::socket, "socket", EMFILE},
    {Call::socketpair, "socketpair", ENFILE},
    {Call::accept, "accept4", EMFILE},
    {Call::bind, "bind", ENOMEM},
    {Call::connect, "connect", EAGAIN},
    {Call::listen, "listen", EADDRINUSE},
    {Call::setsockopt, "setsockopt", ENOMEM},
    {Call::getsockopt, "getsockopt", ENOBUFS},
    {Call::getsockname, "getsockname", ENOBUFS},
    {Call::getifaddrs, "getifaddrs", EMFILE},
    {Call::epoll_create, "epoll_create1", EMFILE},
    {Call::epoll_ctl, "epoll_ctl", ENOMEM},
    {Call::eventfd, "eventfd", EMFILE},
    {Call::open, "open", ENFILE},
    {Call::memfd_create, "memfd_create", ENFILE},
    {Call::dup, "dup", EMFILE},
    {Call::fcntl, "fcntl", EMFILE},
    {Call::ftruncate, "ftruncate", EFBIG},
    {Call::fallocate, "fallocate", ENOSPC},
    {Call::pwrite, "pwrite", ENOSPC},
    {Call::mmap, "mmap", ENOMEM},
    {Call::mremap, "mremap", ENOMEM},
    {Call::madvise, "madvise", EAGAIN},  // ENOMEM would mean that nothing is mapped there
    {Call::mprotect, "mprotect", ENOMEM},
    {Call::sendmsg, "sendmsg", ENOMEM},
    {Call::sendmsg, "sendmsg", ENOBUFS},
    {Call::sendmsg, "sendmsg", EPERM},
    {Call::send, "send", ENOBUFS},
    {Call::sendto, "sendto", EPERM},
    {Call::descriptors, "recvmsg of descriptors", EMFILE},
    {Call::read_process, "process_vm_readv", ENOMEM},
    {Call::write_process, "process_vm_writev", ENOMEM},
    {Call::thread, "pthread_create", EAGAIN},
};

struct Armed {
  std::atomic<bool> is_set{false};
  Refusal refusal{};
  unsigned number = 0;
  std::atomic<unsigned> count{0};
  std::array<void*, 24> frames{};
  std::atomic<int> frame_count{0};
};
Armed armed;

/// Whether this call must fail. Sets errno then.
bool is_refused(Call call) {
  if (!armed.is_set.load(std::memory_order_acquire) || armed.refusal.call != call) return false;
  if (armed.count.fetch_add(1) + 1 != armed.number) return false;
  armed.frame_count = ::backtrace(armed.frames.data(), static_cast<int>(armed.frames.size()));
  errno = armed.refusal.error;
  return true;
}

template <typename Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

std::span<const Refusal> all_refusals() {
  return kRefusals;
}

void FailingKernel::arm(const Refusal& refusal, unsigned number) {
  ::backtrace(armed.frames.data(), 1);  // the first call loads a library
  armed.refusal = refusal;
  armed.number = number;
  armed.count = 0;
  armed.frame_count = 0;
  armed.is_set.store(true, std::memory_order_release);
}

void FailingKernel::disarm() {
  armed.is_set = false;
}

std::string FailingKernel::refused() {
  std::string text;
  char** const names = ::backtrace_symbols(armed.frames.data(), armed.frame_count);
  for (int i = 0; i < armed.frame_count; ++i) (text += names[i]) += '\n';
  std::free(names);
  return text;
}

}  // namespace fairlead::tests

using fairlead::tests::Call;
using fairlead::tests::is_refused;
using fairlead::tests::real;

// These definitions replace the C library's, also for the C++ library, because a program's own symbols come first.
extern "C" {

int socket(int family, int type, int protocol) noexcept {
  static auto* const next = real<decltype(socket)>("socket");
  return is_refused(Call::socket) ? -1 : next(family, type, protocol);
}
int socketpair(int family, int type, int protocol, int ends[2]) noexcept {
  static auto* const next = real<decltype(socketpair)>("socketpair");
  return is_refused(Call::socketpair) ? -1 : next(family, type, protocol, ends);
}
int accept4(int socket, sockaddr* address, socklen_t* length, int flags) {
  static auto* const next = real<decltype(accept4)>("accept4");
  return is_refused(Call::accept) ? -1 : next(socket, address, length, flags);
}
int bind(int socket, const sockaddr* address, socklen_t length) noexcept {
  static auto* const next = real<decltype(bind)>("bind");
  return is_refused(Call::bind) ? -1 : next(socket, address, length);
}
int connect(int socket, const sockaddr* address, socklen_t length) {
  static auto* const next = real<decltype(connect)>("connect");
  return is_refused(Call::connect) ? -1 : next(socket, address, length);
}
int listen(int socket, int most) noexcept {
  static auto* const next = real<decltype(listen)>("listen");
  return is_refused(Call::listen) ? -1 : next(socket, most);
}
int setsockopt(int socket, int level, int name, const void* value, socklen_t length) noexcept {
  static auto* const next = real<decltype(setsockopt)>("setsockopt");
  return is_refused(Call::setsockopt) ? -1 : next(socket, level, name, value, length);
}
int getsockopt(int socket, int level, int name, void* value, socklen_t* length) noexcept {
  static auto* const next = real<decltype(getsockopt)>("getsockopt");
  return is_refused(Call::getsockopt) ? -1 : next(socket, level, name, value, length);
}
int getsockname(int socket, sockaddr* address, socklen_t* length) noexcept {
  static auto* const next = real<decltype(getsockname)>("getsockname");
  return is_refused(Call::getsockname) ? -1 : next(socket, address, length);
}
int getifaddrs(ifaddrs** list) noexcept {
  static auto* const next = real<decltype(getifaddrs)>("getifaddrs");
  return is_refused(Call::getifaddrs) ? -1 : next(list);
}
int epoll_create1(int flags) noexcept {
  static auto* const next = real<decltype(epoll_create1)>("epoll_create1");
  return is_refused(Call::epoll_create) ? -1 : next(flags);
}
int epoll_ctl(int set, int operation, int file, epoll_event* event) noexcept {
  static auto* const next = real<decltype(epoll_ctl)>("epoll_ctl");
  return is_refused(Call::epoll_ctl) ? -1 : next(set, operation, file, event);
}
int eventfd(unsigned value, int flags) noexcept {
  static auto* const next = real<decltype(eventfd)>("eventfd");
  return is_refused(Call::eventfd) ? -1 : next(value, flags);
}
int open(const char* path, int flags, ...) {
  static auto* const next = real<int(const char*, int, mode_t)>("open");
  va_list more;
  va_start(more, flags);
  const mode_t mode = va_arg(more, mode_t);
  va_end(more);
  return is_refused(Call::open) ? -1 : next(path, flags, mode);
}
int openat(int folder, const char* path, int flags, ...) {
  static auto* const next = real<int(int, const char*, int, mode_t)>("openat");
  va_list more;
  va_start(more, flags);
  const mode_t mode = va_arg(more, mode_t);
  va_end(more);
  return is_refused(Call::open) ? -1 : next(folder, path, flags, mode);
}
std::FILE* fopen(const char* path, const char* mode) {
  static auto* const next = real<decltype(fopen)>("fopen");
  return is_refused(Call::open) ? nullptr : next(path, mode);
}
std::FILE* fopen64(const char* path, const char* mode) {
  static auto* const next = real<decltype(fopen)>("fopen64");
  return is_refused(Call::open) ? nullptr : next(path, mode);
}
int memfd_create(const char* name, unsigned flags) noexcept {
  static auto* const next = real<decltype(memfd_create)>("memfd_create");
  return is_refused(Call::memfd_create) ? -1 : next(name, flags);
}
int dup(int file) noexcept {
  static auto* const next = real<decltype(dup)>("dup");
  return is_refused(Call::dup) ? -1 : next(file);
}
int fcntl(int file, int command, ...) {
  static auto* const next = real<int(int, int, void*)>("fcntl");
  va_list more;
  va_start(more, command);
  void* const argument = va_arg(more, void*);
  va_end(more);
  return is_refused(Call::fcntl) ? -1 : next(file, command, argument);
}
int ftruncate(int file, off_t bytes) noexcept {
  static auto* const next = real<decltype(ftruncate)>("ftruncate");
  return is_refused(Call::ftruncate) ? -1 : next(file, bytes);
}
int fallocate(int file, int mode, off_t offset, off_t bytes) {
  static auto* const next = real<decltype(fallocate)>("fallocate");
  return is_refused(Call::fallocate) ? -1 : next(file, mode, offset, bytes);
}
ssize_t pwrite(int file, const void* bytes, std::size_t count, off_t offset) {
  static auto* const next = real<decltype(pwrite)>("pwrite");
  return is_refused(Call::pwrite) ? -1 : next(file, bytes, count, offset);
}
void* mmap(void* at, std::size_t bytes, int rights, int flags, int file, off_t offset) noexcept {
  static auto* const next = real<decltype(mmap)>("mmap");
  return is_refused(Call::mmap) ? MAP_FAILED : next(at, bytes, rights, flags, file, offset);
}
void* mremap(void* memory, std::size_t before, std::size_t after, int flags, ...) noexcept {
  static auto* const next = real<void*(void*, std::size_t, std::size_t, int, void*)>("mremap");
  va_list more;
  va_start(more, flags);
  void* const to = va_arg(more, void*);
  va_end(more);
  return is_refused(Call::mremap) ? MAP_FAILED : next(memory, before, after, flags, to);
}
int madvise(void* at, std::size_t bytes, int advice) noexcept {
  static auto* const next = real<decltype(madvise)>("madvise");
  return is_refused(Call::madvise) ? -1 : next(at, bytes, advice);
}
int mprotect(void* at, std::size_t bytes, int rights) noexcept {
  static auto* const next = real<decltype(mprotect)>("mprotect");
  return is_refused(Call::mprotect) ? -1 : next(at, bytes, rights);
}
ssize_t sendmsg(int socket, const msghdr* message, int flags) {
  static auto* const next = real<decltype(sendmsg)>("sendmsg");
  return is_refused(Call::sendmsg) ? -1 : next(socket, message, flags);
}
ssize_t send(int socket, const void* bytes, std::size_t count, int flags) {
  static auto* const next = real<decltype(send)>("send");
  return is_refused(Call::send) ? -1 : next(socket, bytes, count, flags);
}
ssize_t sendto(int socket, const void* bytes, std::size_t count, int flags, const sockaddr* to, socklen_t length) {
  static auto* const next = real<decltype(sendto)>("sendto");
  return is_refused(Call::sendto) ? -1 : next(socket, bytes, count, flags, to, length);
}
// The kernel closes descriptors that find no room, and sets a flag.
ssize_t recvmsg(int socket, msghdr* message, int flags) {
  static auto* const next = real<decltype(recvmsg)>("recvmsg");
  const ssize_t received = next(socket, message, flags);
  if (received < 0) return received;
  for (cmsghdr* each = CMSG_FIRSTHDR(message); each != nullptr; each = CMSG_NXTHDR(message, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS || !is_refused(Call::descriptors)) continue;
    for (std::size_t at = 0; CMSG_LEN(at + sizeof(int)) <= each->cmsg_len; at += sizeof(int)) {
      int file = -1;
      std::memcpy(&file, CMSG_DATA(each) + at, sizeof file);
      ::close(file);
    }
    message->msg_controllen = 0;
    message->msg_flags |= MSG_CTRUNC;
    break;
  }
  return received;
}
ssize_t process_vm_readv(pid_t process, const iovec* here, unsigned long count_here, const iovec* there,
                         unsigned long count_there, unsigned long flags) noexcept {
  static auto* const next = real<decltype(process_vm_readv)>("process_vm_readv");
  return is_refused(Call::read_process) ? -1 : next(process, here, count_here, there, count_there, flags);
}
ssize_t process_vm_writev(pid_t process, const iovec* here, unsigned long count_here, const iovec* there,
                          unsigned long count_there, unsigned long flags) noexcept {
  static auto* const next = real<decltype(process_vm_writev)>("process_vm_writev");
  return is_refused(Call::write_process) ? -1 : next(process, here, count_here, there, count_there, flags);
}
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) noexcept {
  static auto* const next = real<decltype(pthread_create)>("pthread_create");
  return is_refused(Call::thread) ? EAGAIN : next(thread, attributes, run, argument);
}
}
