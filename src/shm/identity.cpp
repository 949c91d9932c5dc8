#include "shm/identity.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace fairlead::shm {

Identity::Identity(Identity&& other) noexcept : mapping_(std::exchange(other.mapping_, {})) {}

Identity& Identity::operator=(Identity&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  return *this;
}

Identity::~Identity() {
  if (!mapping_.empty()) ::munmap(mapping_.data(), mapping_.size());
}

Result<Identity> Identity::create(std::size_t record_bytes) {
  const std::size_t bytes = kRecordsAt + record_bytes;
  void* const space =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED) return std::unexpected(Error{Status::no_memory, errno, "no memory to be known by"});
  Identity identity;
  identity.mapping_ = {static_cast<std::byte*>(space), bytes};
  ::madvise(space, bytes, MADV_WIPEONFORK);
  ::madvise(space, bytes, MADV_DONTDUMP);
  if (::getentropy(space, sizeof(Nonce)) != 0)
    return std::unexpected(Error{Status::system, errno, "no random bits to be known by"});
  return identity;
}

}  // namespace fairlead::shm
