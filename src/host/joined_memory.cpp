#include "host/joined_memory.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <utility>

namespace fairlead::host {

JoinedMemory::JoinedMemory(JoinedMemory&& other) noexcept : mapping_(std::exchange(other.mapping_, {})) {}

JoinedMemory& JoinedMemory::operator=(JoinedMemory&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  return *this;
}

JoinedMemory::~JoinedMemory() {
  if (!mapping_.empty()) ::munmap(mapping_.data(), mapping_.size());
}

Result<JoinedMemory> JoinedMemory::map(int file, std::span<const MemoryPiece> pieces) {
  std::size_t bytes = 0;
  for (const MemoryPiece& piece : pieces) bytes += piece.length;
  const auto failed = [] {
    return std::unexpected(Error{Status::no_memory, errno, "memory region: the host engine cannot map its pieces"});
  };
  void* const place = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) return failed();
  JoinedMemory joined({static_cast<std::byte*>(place), bytes});
  std::byte* at = joined.begin();
  for (const MemoryPiece& piece : pieces) {
    if (::mmap(at, piece.length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
               static_cast<off_t>(piece.offset)) == MAP_FAILED)
      return failed();
    at += piece.length;
  }
  ::madvise(joined.begin(), bytes, MADV_DONTDUMP);
  return joined;
}

}  // namespace fairlead::host
