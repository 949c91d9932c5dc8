#pragma once
// The initiator's side: what we do by ourselves in the memory of a peer of this host, which need not run. While it
// lives, we are inside: what the owner withdraws before we have entered we find withdrawn, and for what we have begun
// it waits (docs/one-sided.md). Nothing here waits, locks, allocates or rings.
//
// Memory outside the owner's arena is reached by system calls (shm/cross_memory.hpp). All peers of the owner can write
// to the tables in its arena, so for such memory nobody believes them: where it lies, and who may use it, is read from
// the owner's own records.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <sys/uio.h>

#include "base/socket_address.hpp"
#include "onesided/shared_tables.hpp"
#include "shm/connection.hpp"

namespace fairlead::onesided {

/// What a queue pair asks of a region.
struct RegionRequest {
  const base::SocketAddress& from;  // the engine of the queue pair that asks
  std::uint32_t own_pair = 0;       // its number ...
  std::uint32_t pair = 0;           // ... and that of the one it is connected to
  std::uint32_t key = 0, right = 0;
  std::uint64_t address = 0, length = 0;
  bool is_word = false;

  shm::Use use() const noexcept { return shm::Use::of_region(key >> 8, pair); }
};

struct ExposureRequest {
  std::uint64_t key = 0;
  std::uint32_t port = 0;
  bool is_put = false;
  std::uint64_t length = 0;  // of the initiator's memory

  shm::Use use() const noexcept { return shm::Use::of_exposure(key); }
};

/// Where an exposure lies.
struct ExposurePlace {
  std::byte* mapped = nullptr;  // null: outside the arena ...
  std::uint64_t address = 0;    // ... at this address of the owner's
  std::uint64_t length = 0;     // of what is transferred
};

class RemoteMemory {
 public:
  RemoteMemory(shm::Connection& owner, shm::Use use) noexcept : owner_(owner) { owner_.enter(use); }
  ~RemoteMemory() { owner_.leave(); }
  RemoteMemory(const RemoteMemory&) = delete;
  RemoteMemory& operator=(const RemoteMemory&) = delete;

  /// A system call has failed: what was to be written is to be written again, by whatever other way.
  bool has_failed() const noexcept { return has_failed_; }

  // Regions --------------------------------------------------------------------------------------------------------

  /// Where the bytes lie in the owner's arena; null if not there, or queue pair and region do not permit it.
  std::byte* find_mapped(const RegionRequest& request) const noexcept;
  /// Their address there, whether in the arena or not.
  std::optional<std::uint64_t> find_by_calls(const RegionRequest& request) noexcept;
  bool read(std::span<const iovec> to, std::uint64_t from, std::uint64_t bytes) noexcept;
  /// The last word is stored last.
  bool write(std::uint64_t to, std::span<const iovec> from, std::uint64_t bytes) noexcept;

  // Exposures ------------------------------------------------------------------------------------------------------

  /// Where it lies, if it is there and fits, as far as the table tells.
  std::optional<ExposurePlace> find(const ExposureRequest& request) noexcept;
  /// The same of one outside the arena, as the owner tells.
  std::optional<ExposurePlace> find_by_calls(const ExposureRequest& request) noexcept;
  /// So that nobody else uses it. False: it is too late.
  bool claim(std::uint64_t key) noexcept { return exposure(key).claim(key, own_name()); }
  /// False: a call has failed, and what was claimed is given back.
  bool copy(const ExposureRequest& request, const ExposurePlace& place, std::span<const iovec> pieces) noexcept;

 private:
  SharedTables& tables() const noexcept { return *reinterpret_cast<SharedTables*>(owner_.arena->head()); }
  PublishedExposure& exposure(std::uint64_t key) const noexcept {
    return tables().exposures[key % SharedTables::kExposures];
  }
  /// How we call ourselves in the owner's table.
  std::uint64_t own_name() const noexcept { return std::uint64_t{owner_.doorbell_bit} + 1; }
  bool note(bool is_done) noexcept {
    has_failed_ |= !is_done;
    return is_done;
  }

  shm::Connection& owner_;
  bool has_failed_ = false;
};

}  // namespace fairlead::onesided
