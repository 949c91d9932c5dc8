// The functions that libibverbs exports for reading /sys.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>

#include "doors/ibverbs/abi.hpp"

extern "C" {

int ibv_read_sysfs_file(const char* folder, const char* file, char* text, size_t size);
int ibv_read_ibdev_sysfs_file(char* text, size_t size, void* device, const char* format, ...);
const char* ibv_get_sysfs_path();

const char* ibv_get_sysfs_path() {
  return "/sys";
}

int ibv_read_sysfs_file(const char* folder, const char* file, char* text, size_t size) try {
  const int in = ::open((std::string(folder) + "/" + file).c_str(), O_RDONLY | O_CLOEXEC);
  if (in < 0 || size == 0) {
    if (in >= 0) ::close(in);
    return -1;
  }
  const ssize_t length = ::read(in, text, size);
  ::close(in);
  if (length < 0) return -1;
  auto end = static_cast<size_t>(length);
  if (end > 0 && text[end - 1] == '\n') {
    text[--end] = '\0';
  } else if (end < size) {
    text[end] = '\0';
  } else {
    text[size - 1] = '\0';
  }
  return static_cast<int>(end);
} catch (const std::bad_alloc&) {
  errno = ENOMEM;
  return -1;
}

int ibv_read_ibdev_sysfs_file(char*, size_t, void*, const char*, ...) {
  return -1;  // it needs a structure of hardware drivers
}
}
