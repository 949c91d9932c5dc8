// Wraps the libc calls that take a descriptor of the connection manager's device file. For other descriptors they cost
// one load (descriptor_table.hpp).
#undef _FORTIFY_SOURCE

#include "doors/rdma_cm/redirect.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>

#include "doors/rdma_cm/command.hpp"
#include "doors/rdma_cm/descriptor_table.hpp"
#include "doors/rdma_cm/service.hpp"

namespace fairlead::rdma_cm {

int open_device_file(int flags) {
  const int descriptor = Service::of_process().open(flags);
  if (descriptor < 0) return -1;
  struct stat status{};
  if (::fstatat(descriptor, "", &status, AT_EMPTY_PATH) == 0 && note_device_file(descriptor, status.st_ino))
    return descriptor;
  ::close(descriptor);  // write() would not recognise it
  errno = EMFILE;
  return -1;
}

}  // namespace fairlead::rdma_cm

namespace {

using namespace fairlead::rdma_cm;

/// The libc function behind a wrapper. It has no static guard, because signal handlers call write() and close().
template <typename Function>
class Next {
 public:
  constexpr explicit Next(const char* name) : name_(name) {}
  template <typename... Arguments>
  auto operator()(Arguments... arguments) {
    Function* function = function_.load(std::memory_order_relaxed);
    if (function == nullptr) {
      function = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name_));
      function_.store(function, std::memory_order_relaxed);
    }
    return function(arguments...);
  }

 private:
  const char* name_;
  std::atomic<Function*> function_{nullptr};
};

constinit Next<ssize_t(int, const void*, size_t)> next_write("write");
constinit Next<int(int)> next_close("close");
constinit Next<int(int)> next_dup("dup");
constinit Next<int(int, int)> next_dup2("dup2");
constinit Next<int(int, int, int)> next_dup3("dup3");
constinit Next<int(int, int, ...)> next_fcntl("fcntl");
constinit Next<int(int, int, ...)> next_fcntl64("fcntl64");
constinit Next<int(int, struct stat*)> next_fstat("fstat");
constinit Next<int(int, struct stat64*)> next_fstat64("fstat64");
constinit Next<int(int, int, struct stat*)> next_fxstat("__fxstat");
constinit Next<int(int, int, struct stat64*)> next_fxstat64("__fxstat64");

constexpr unsigned kMiscMajor = 10, kMinor = 59;  // if the kernel has no such device

/// Makes the socket look like the character device that it stands for. Uses the kernel's own device number if there is
/// one, because librdmacm has asked the kernel for it.
template <typename Status>
int as_device(int result, int descriptor, Status& status) {
  if (result != 0 || !is_device_file(descriptor)) return result;
  static const dev_t device = [] {
    struct statx real{};
    constexpr const char* kReal = "//dev/infiniband/rdma_cm";  // bypasses our own wrapper
    return ::statx(AT_FDCWD, kReal, 0, STATX_TYPE, &real) == 0 && S_ISCHR(real.stx_mode)
               ? makedev(real.stx_rdev_major, real.stx_rdev_minor)
               : makedev(kMiscMajor, kMinor);
  }();
  status.st_mode = S_IFCHR | 0666;
  status.st_rdev = device;
  return result;
}

int copied(int descriptor, int copy) {
  note_copy(descriptor, copy);
  return copy;
}

bool is_copying(int action) {
  return action == F_DUPFD || action == F_DUPFD_CLOEXEC;
}

}  // namespace

extern "C" {

int __fxstat(int version, int descriptor, struct stat* status);
int __fxstat64(int version, int descriptor, struct stat64* status);

ssize_t write(int descriptor, const void* bytes, size_t size) {
  if (!is_device_file(descriptor)) return next_write(descriptor, bytes, size);
  const auto file = file_of(descriptor);
  return file ? write_command(file, descriptor, bytes, size) : -1;
}

// Closing the last copy ends its ids. A listener's port is free when close() returns, as with the kernel.
int close(int descriptor) {
  const bool is_ours = is_device_file(descriptor);
  const int result = next_close(descriptor);
  if (is_ours && has_device_files()) {
    const int errno_before = errno;
    Service::of_process().end_closed_files();
    errno = errno_before;
  }
  return result;
}

int dup(int descriptor) noexcept {
  return copied(descriptor, next_dup(descriptor));
}
int dup2(int descriptor, int copy) noexcept {
  return copied(descriptor, next_dup2(descriptor, copy));
}
int dup3(int descriptor, int copy, int flags) noexcept {
  return copied(descriptor, next_dup3(descriptor, copy, flags));
}

// The third argument's type does not matter: it is passed on as the widest.
int fcntl(int descriptor, int action, ...) {
  va_list arguments;
  va_start(arguments, action);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  const int result = next_fcntl(descriptor, action, argument);
  return is_copying(action) ? copied(descriptor, result) : result;
}
int fcntl64(int descriptor, int action, ...) {
  va_list arguments;
  va_start(arguments, action);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  const int result = next_fcntl64(descriptor, action, argument);
  return is_copying(action) ? copied(descriptor, result) : result;
}

int fstat(int descriptor, struct stat* status) noexcept {
  return as_device(next_fstat(descriptor, status), descriptor, *status);
}
int fstat64(int descriptor, struct stat64* status) noexcept {
  return as_device(next_fstat64(descriptor, status), descriptor, *status);
}
int __fxstat(int version, int descriptor, struct stat* status) {
  return as_device(next_fxstat(version, descriptor, status), descriptor, *status);
}
int __fxstat64(int version, int descriptor, struct stat64* status) {
  return as_device(next_fxstat64(version, descriptor, status), descriptor, *status);
}
}
