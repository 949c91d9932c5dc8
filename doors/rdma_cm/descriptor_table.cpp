#include "doors/rdma_cm/descriptor_table.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>

#include "base/process_mark.hpp"
#include "doors/rdma_cm/service.hpp"

namespace fairlead::rdma_cm {
namespace {

constexpr std::size_t kDescriptors = 65536;
constinit std::array<std::atomic<ino_t>, kDescriptors> inodes{};  // 0: not ours; untouched pages use no memory

constinit std::atomic<const base::ProcessMark*> opened_in{nullptr};

std::atomic<ino_t>* place_of(int descriptor) {
  const auto place = static_cast<std::size_t>(descriptor);
  return descriptor >= 0 && place < kDescriptors ? &inodes[place] : nullptr;
}

/// Returns 0 if it is no device file.
ino_t inode_of_device_file(int descriptor) {
  std::atomic<ino_t>* const place = place_of(descriptor);
  if (place == nullptr) return 0;
  ino_t noted = place->load(std::memory_order_relaxed);
  if (noted == 0) return 0;
  const int errno_before = errno;
  struct stat status{};
  const bool is_ours =
      ::fstatat(descriptor, "", &status, AT_EMPTY_PATH) == 0 && S_ISSOCK(status.st_mode) && status.st_ino == noted;
  errno = errno_before;
  if (is_ours) return noted;
  place->compare_exchange_strong(noted, 0, std::memory_order_relaxed);
  return 0;
}

}  // namespace

bool is_device_file(int descriptor) {
  return inode_of_device_file(descriptor) != 0;
}

bool has_device_files() {
  const base::ProcessMark* const mark = opened_in.load(std::memory_order_acquire);
  return mark != nullptr && !mark->is_inherited();
}

bool note_device_file(int descriptor, ino_t inode) {
  std::atomic<ino_t>* const place = place_of(descriptor);
  if (place == nullptr) return false;
  if (!has_device_files()) opened_in.store(new base::ProcessMark, std::memory_order_release);  // once per process
  place->store(inode, std::memory_order_relaxed);
  return true;
}

void note_copy(int descriptor, int copy) {
  if (copy < 0) return;
  const ino_t inode = inode_of_device_file(descriptor);
  std::atomic<ino_t>* const place = place_of(copy);
  if (inode != 0 && place != nullptr) place->store(inode, std::memory_order_relaxed);
}

std::shared_ptr<EventFile> file_of(int descriptor) {
  const ino_t inode = inode_of_device_file(descriptor);
  auto file = inode != 0 && has_device_files() ? Service::of_process().find_file(inode) : nullptr;
  if (!file) errno = inode != 0 ? EIO : EBADF;
  return file;
}

}  // namespace fairlead::rdma_cm
