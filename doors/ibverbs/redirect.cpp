// Wraps the libc calls that take a path. /sys/class/infiniband, /sys/class/infiniband_verbs, /sys/class/misc/rdma_cm
// and /dev/infiniband lead into the emulated tree. Opening /dev/infiniband/rdma_cm opens the connection manager. Calls
// within libc (fopen to open, scandir to opendir) bypass the wrappers, so the outer functions are wrapped, too. All
// other paths go to libc unchanged.
#undef _FORTIFY_SOURCE

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "doors/ibverbs/absent.hpp"
#include "doors/ibverbs/sysfs_tree.hpp"
#include "doors/rdma_cm/redirect.hpp"

namespace {

constexpr std::string_view kSys = "/sys/class/infiniband";
constexpr std::string_view kVerbs = "_verbs";
constexpr std::string_view kDev = "/dev/infiniband";
constexpr std::string_view kManager = "/dev/infiniband/rdma_cm";
constexpr std::string_view kManagerSys = "/sys/class/misc/rdma_cm";
constexpr std::string_view kDatagramDevice = "/dev/infiniband/umad", kDatagramSys = "/sys/class/infiniband_mad";

bool is_end(char c) {
  return c == '\0' || c == '/';
}

bool is_below(const char* path, std::string_view folder) {
  return std::strncmp(path, folder.data(), folder.size()) == 0 && is_end(path[folder.size()]);
}

bool is_manager(const char* path) {
  return path != nullptr && kManager == path;
}

// A subnet manager's interface. The tree lacks it, so the program gets ENOENT.
bool is_of_management_datagrams(const char* path) {
  return std::strncmp(path, kDatagramDevice.data(), kDatagramDevice.size()) == 0 || is_below(path, kDatagramSys);
}

bool is_ours(const char* path) {
  if (is_below(path, kDev) || is_below(path, kManagerSys) || is_below(path, kDatagramSys)) return true;
  if (std::strncmp(path, kSys.data(), kSys.size()) != 0) return false;
  path += kSys.size();
  if (std::strncmp(path, kVerbs.data(), kVerbs.size()) == 0) path += kVerbs.size();
  return is_end(*path);
}

/// The path to use instead of the program's. Valid while the object lives.
class Target {
 public:
  [[gnu::noinline]] explicit Target(const char* path) : path_(path) {
    if (path == nullptr || path[0] != '/' || !is_ours(path)) return;
    const int errno_before = errno;
    if (is_of_management_datagrams(path))
      fairlead::ibverbs::tell_absent(fairlead::ibverbs::Absent::management_datagrams);
    if (const std::string tree = fairlead::ibverbs::sysfs_tree(); !tree.empty()) {
      made_up_ = tree + path;
      path_ = made_up_.c_str();
    }
    errno = errno_before;
  }
  operator const char*() const { return path_; }

 private:
  const char* path_;
  std::string made_up_;
};

template <typename Function>
Function* next(Function*, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

// The libc function behind the wrapper that uses this macro.
#define FAIRLEAD_NEXT(name)                          \
  ([] {                                              \
    static const auto function = next(&name, #name); \
    return function;                                 \
  }())

mode_t mode_of(int flags, va_list arguments) {
  return (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

extern "C" {

// Old and fortified binaries refer to these names; current headers do not declare them.
int __open_2(const char* path, int flags);
int __open64_2(const char* path, int flags);
int __openat_2(int folder, const char* path, int flags);
int __openat64_2(int folder, const char* path, int flags);
int __xstat(int version, const char* path, struct stat* status);
int __lxstat(int version, const char* path, struct stat* status);
int __xstat64(int version, const char* path, struct stat64* status);
int __lxstat64(int version, const char* path, struct stat64* status);
char* __realpath_chk(const char* path, char* resolved, std::size_t size);
ssize_t __readlink_chk(const char* path, char* out, std::size_t length, std::size_t size);

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  if (is_manager(path)) return fairlead::rdma_cm::open_device_file(flags);
  return FAIRLEAD_NEXT(open)(Target(path), flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  if (is_manager(path)) return fairlead::rdma_cm::open_device_file(flags);
  return FAIRLEAD_NEXT(open64)(Target(path), flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  if (is_manager(path)) return fairlead::rdma_cm::open_device_file(flags);
  return FAIRLEAD_NEXT(openat)(folder, Target(path), flags, mode);
}

int openat64(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  if (is_manager(path)) return fairlead::rdma_cm::open_device_file(flags);
  return FAIRLEAD_NEXT(openat64)(folder, Target(path), flags, mode);
}

int __open_2(const char* path, int flags) {
  if (is_manager(path)) return fairlead::rdma_cm::open_device_file(flags);
  return FAIRLEAD_NEXT(__open_2)(Target(path), flags);
}
int __open64_2(const char* path, int flags) {
  if (is_manager(path)) return fairlead::rdma_cm::open_device_file(flags);
  return FAIRLEAD_NEXT(__open64_2)(Target(path), flags);
}
int __openat_2(int folder, const char* path, int flags) {
  if (is_manager(path)) return fairlead::rdma_cm::open_device_file(flags);
  return FAIRLEAD_NEXT(__openat_2)(folder, Target(path), flags);
}
int __openat64_2(int folder, const char* path, int flags) {
  if (is_manager(path)) return fairlead::rdma_cm::open_device_file(flags);
  return FAIRLEAD_NEXT(__openat64_2)(folder, Target(path), flags);
}

FILE* fopen(const char* path, const char* mode) {
  return FAIRLEAD_NEXT(fopen)(Target(path), mode);
}
FILE* fopen64(const char* path, const char* mode) {
  return FAIRLEAD_NEXT(fopen64)(Target(path), mode);
}

int stat(const char* path, struct stat* status) noexcept {
  return FAIRLEAD_NEXT(stat)(Target(path), status);
}
int stat64(const char* path, struct stat64* status) noexcept {
  return FAIRLEAD_NEXT(stat64)(Target(path), status);
}
int lstat(const char* path, struct stat* status) noexcept {
  return FAIRLEAD_NEXT(lstat)(Target(path), status);
}
int lstat64(const char* path, struct stat64* status) noexcept {
  return FAIRLEAD_NEXT(lstat64)(Target(path), status);
}
int fstatat(int folder, const char* path, struct stat* status, int flags) noexcept {
  return FAIRLEAD_NEXT(fstatat)(folder, Target(path), status, flags);
}
int fstatat64(int folder, const char* path, struct stat64* status, int flags) noexcept {
  return FAIRLEAD_NEXT(fstatat64)(folder, Target(path), status, flags);
}
int statx(int folder, const char* path, int flags, unsigned mask, struct statx* status) noexcept {
  return FAIRLEAD_NEXT(statx)(folder, Target(path), flags, mask, status);
}
int __xstat(int version, const char* path, struct stat* status) {
  return FAIRLEAD_NEXT(__xstat)(version, Target(path), status);
}
int __lxstat(int version, const char* path, struct stat* status) {
  return FAIRLEAD_NEXT(__lxstat)(version, Target(path), status);
}
int __xstat64(int version, const char* path, struct stat64* status) {
  return FAIRLEAD_NEXT(__xstat64)(version, Target(path), status);
}
int __lxstat64(int version, const char* path, struct stat64* status) {
  return FAIRLEAD_NEXT(__lxstat64)(version, Target(path), status);
}

int access(const char* path, int mode) noexcept {
  return FAIRLEAD_NEXT(access)(Target(path), mode);
}
int faccessat(int folder, const char* path, int mode, int flags) noexcept {
  return FAIRLEAD_NEXT(faccessat)(folder, Target(path), mode, flags);
}

int chdir(const char* path) noexcept {
  return FAIRLEAD_NEXT(chdir)(Target(path));
}

DIR* opendir(const char* path) {
  return FAIRLEAD_NEXT(opendir)(Target(path));
}
int scandir(const char* path, dirent*** list, int (*select)(const dirent*),
            int (*compare)(const dirent**, const dirent**)) {
  return FAIRLEAD_NEXT(scandir)(Target(path), list, select, compare);
}
int scandir64(const char* path, dirent64*** list, int (*select)(const dirent64*),
              int (*compare)(const dirent64**, const dirent64**)) {
  return FAIRLEAD_NEXT(scandir64)(Target(path), list, select, compare);
}

ssize_t readlink(const char* path, char* out, std::size_t length) noexcept {
  return FAIRLEAD_NEXT(readlink)(Target(path), out, length);
}
ssize_t readlinkat(int folder, const char* path, char* out, std::size_t length) noexcept {
  return FAIRLEAD_NEXT(readlinkat)(folder, Target(path), out, length);
}
ssize_t __readlink_chk(const char* path, char* out, std::size_t length, std::size_t size) {
  return FAIRLEAD_NEXT(__readlink_chk)(Target(path), out, length, size);
}
ssize_t getxattr(const char* path, const char* name, void* value, std::size_t size) noexcept {
  return FAIRLEAD_NEXT(getxattr)(Target(path), name, value, size);
}
ssize_t lgetxattr(const char* path, const char* name, void* value, std::size_t size) noexcept {
  return FAIRLEAD_NEXT(lgetxattr)(Target(path), name, value, size);
}
char* realpath(const char* path, char* resolved) noexcept {
  return FAIRLEAD_NEXT(realpath)(Target(path), resolved);
}
char* __realpath_chk(const char* path, char* resolved, std::size_t size) {
  return FAIRLEAD_NEXT(__realpath_chk)(Target(path), resolved, size);
}
}
