#include "shm/memory.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/file_signals.hpp"
#include "base/numa.hpp"

namespace fairlead::shm {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::unexpected<Error> failed(std::string_view what) {
  const int number = errno;
  const char* limits = number == EFBIG ? "limit of file sizes (ulimit -f)" : "limits of memory and of open files";
  return std::unexpected(
      Error{Status::system, number,
            fmt::format("cannot {} for a peer on this host: {}: raise the {}, or set FAIRLEAD_PATH=udp", what,
                        std::strerror(number), limits)});
}

}  // namespace

Memory::Memory(Memory&& other) noexcept
    : file_(std::move(other.file_)), mapping_(std::exchange(other.mapping_, {})), layout_(other.layout_) {}

Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(mapping_, other.mapping_);
  std::swap(layout_, other.layout_);
  return *this;
}

Memory::~Memory() {
  if (!mapping_.empty()) ::munmap(mapping_.data(), mapping_.size());
}

Result<Memory> Memory::create(const Layout& layout, bool is_there) {
  base::FileDescriptor file(::memfd_create("fairlead", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.is_open()) return failed("make shared memory");
  if (!base::resize_file(file.get(), layout.file_bytes())) return failed("size shared memory");
  if (is_there && !base::change_room(file.get(), 0, 0, layout.file_bytes())) return failed("take shared memory");
  if (::fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) return failed("seal shared memory");
  auto memory = map(file.get(), layout);
  if (!memory) return memory;
  base::place_near(memory->mapping_, base::preferred_node());
  memory->file_ = std::move(file);
  return memory;
}

Result<Memory> Memory::adopt(int file, const Layout& layout) {
  struct stat facts{};
  struct statfs system{};
  const int seals = ::fcntl(file, F_GET_SEALS);  // fails unless it is a memfd, so the calls below cannot block
  // A daemon that is replaced maps it once more. It must then have the same size, and no F_SEAL_FUTURE_WRITE.
  if (seals < 0 || (seals & kSeals) != kSeals || ::fstatfs(file, &system) != 0 || system.f_type == HUGETLBFS_MAGIC ||
      ::fstat(file, &facts) != 0 || static_cast<std::uint64_t>(facts.st_size) != layout.file_bytes()) {
    return std::unexpected(Error{
        Status::invalid, 0,
        "shared memory of another size, that could change its size or be sealed later, or of reserved huge pages, of "
        "which none may be left: the peer is no engine"});
  }
  return map(file, layout);
}

Result<Memory> Memory::map(int file, const Layout& layout) {
  const std::size_t bytes = layout.head_bytes + 2 * layout.rings * layout.ring_bytes;
  // Huge pages require the mapping to be aligned like the file.
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  const std::size_t spare = bytes > kHugePage ? kHugePage : 0;
  void* space = ::mmap(nullptr, bytes + spare, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED) return failed("find room for shared memory");
  auto* const start = static_cast<std::byte*>(space);
  const std::size_t before = spare == 0 ? 0 : -reinterpret_cast<std::uintptr_t>(space) % kHugePage;
  if (before > 0) ::munmap(start, before);
  if (before < spare) ::munmap(start + before + bytes, spare - before);
  Memory memory;
  memory.mapping_ = {start + before, bytes};
  memory.layout_ = layout;
  const auto place = [&](std::byte* at, std::size_t length, std::size_t offset) {
    return length == 0 || ::mmap(at, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
                                 static_cast<off_t>(offset)) != MAP_FAILED;
  };
  bool is_placed = place(memory.head(), layout.head_bytes, 0);
  for (std::size_t number = 0; number < layout.rings; ++number) {
    const std::size_t offset = layout.head_bytes + number * layout.ring_bytes;
    is_placed = is_placed && place(memory.ring(number), layout.ring_bytes, offset) &&
                place(memory.ring(number) + layout.ring_bytes, layout.ring_bytes, offset);
  }
  if (!is_placed) return failed("map shared memory");
  return memory;
}

}  // namespace fairlead::shm
