#include "base/page_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace fairlead::base {

PageMemory::PageMemory(PageMemory&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})), mapping_(std::exchange(other.mapping_, {})) {}

PageMemory& PageMemory::operator=(PageMemory&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  std::swap(mapping_, other.mapping_);
  return *this;
}

PageMemory::~PageMemory() {
  if (!mapping_.empty()) ::munmap(mapping_.data(), mapping_.size());
}

Result<PageMemory> PageMemory::allocate(std::uint64_t size) {
  const bool is_huge = size >= kHugePage;
  const std::uint64_t length = is_huge ? size + kHugePage : size;  // extra room for the alignment
  void* start =
      length < size ? MAP_FAILED : ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) {
    const int number = length < size ? ENOMEM : errno;
    return std::unexpected(Error{Status::no_memory, number,
                                 fmt::format("no {} bytes of memory for a buffer: {}", size, std::strerror(number))});
  }

  PageMemory memory;
  memory.mapping_ = {static_cast<std::byte*>(start), length};
  const auto address = reinterpret_cast<std::uintptr_t>(start);
  const std::uint64_t skipped = is_huge ? (kHugePage - address % kHugePage) % kHugePage : 0;
  memory.bytes_ = memory.mapping_.subspan(skipped, size);
  if (is_huge) ::madvise(memory.bytes_.data(), size, MADV_HUGEPAGE);  // a hint: small pages work too
  return memory;
}

}  // namespace fairlead::base
