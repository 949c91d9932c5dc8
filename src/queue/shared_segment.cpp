#include "queue/shared_segment.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/file_signals.hpp"
#include "queue/location.hpp"

namespace fairlead::queue {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::unexpected<Error> system_error(std::string_view what, std::size_t bytes, int number) {
  return std::unexpected(
      Error{Status::system, number,
            fmt::format("event queue segment of {} bytes: {} failed (errno {}): is there memory, "
                        "a free file descriptor (ulimit -n), and no limit of file sizes (ulimit -f)?",
                        bytes, what, number)});
}

std::byte* map_shared(int descriptor, std::size_t bytes, int flags) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | flags, descriptor, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

}  // namespace

Result<SharedSegment> SharedSegment::create(std::size_t bytes) {
  const int descriptor = memfd_create("fairlead-queue", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) return system_error("memfd_create", bytes, errno);
  SharedSegment segment(nullptr, 0, descriptor);  // closes the descriptor on failure
  if (!base::resize_file(descriptor, bytes)) return system_error("ftruncate", bytes, errno);
  if (fcntl(descriptor, F_ADD_SEALS, kSeals) != 0) return system_error("F_ADD_SEALS", bytes, errno);
  segment.memory_ = map_shared(descriptor, bytes, MAP_POPULATE);
  if (segment.memory_ == nullptr) return system_error("mmap", bytes, errno);
  segment.bytes_ = bytes;
  return segment;
}

Result<SharedSegment> SharedSegment::map(int descriptor) {
  struct stat facts{};
  if (fstat(descriptor, &facts) != 0) return system_error("fstat", 0, errno);
  const auto bytes = static_cast<std::uint64_t>(facts.st_size);
  const int seals = fcntl(descriptor, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || bytes == 0 || bytes > kSegmentBytesMax) {
    return std::unexpected(
        Error{Status::invalid, 0,
              fmt::format("event queue segment of {} bytes: not a memfd sealed against shrinking, of "
                          "1 byte to 4 GiB: make it with SharedSegment::create",
                          bytes)});
  }
  auto* memory = map_shared(descriptor, bytes, 0);
  if (memory == nullptr) return system_error("mmap", bytes, errno);
  return SharedSegment(memory, bytes, -1);
}

SharedSegment::SharedSegment(SharedSegment&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

SharedSegment& SharedSegment::operator=(SharedSegment&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

SharedSegment::~SharedSegment() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace fairlead::queue
