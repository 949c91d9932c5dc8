#pragma once
// The initiator's side: accesses the memory of a local peer directly; the peer need not run. While the object lives,
// its hazard pointer is set. The initiator finds an object withdrawn if the owner withdrew it earlier. The owner waits
// for accesses that began before (docs/one-sided.md). Nothing here waits, locks, allocates or rings.
//
// Memory outside the owner's arena is reached by system calls (shm/cross_memory.hpp). All peers of the owner can write
// to the tables in its arena. For such memory, the location and the rights are therefore read from the owner's private
// records.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <sys/uio.h>

#include "base/socket_address.hpp"
#include "onesided/shared_tables.hpp"
#include "shm/connection.hpp"

namespace fairlead::onesided {

/// A queue pair's request to access a region.
struct RegionRequest {
  const base::SocketAddress& from;  // the engine of the requesting queue pair
  std::uint32_t own_pair = 0;       // number of the requesting queue pair
  std::uint32_t pair = 0;           // number of the queue pair that it is connected to
  std::uint32_t key = 0, right = 0;
  std::uint64_t address = 0, length = 0;
  bool is_word = false;

  shm::Use use() const noexcept { return shm::Use::of_region(key >> 8, pair); }
};

struct ExposureRequest {
  std::uint64_t key = 0;
  std::uint32_t port = 0;
  bool is_put = false;
  std::uint64_t length = 0;  // length of the initiator's memory

  shm::Use use() const noexcept { return shm::Use::of_exposure(key); }
};

/// The location of an exposure.
struct ExposurePlace {
  std::byte* mapped = nullptr;  // null: outside the arena
  std::uint64_t address = 0;    // if outside: the address in the owner's process
  std::uint64_t length = 0;     // bytes to transfer
};

class RemoteMemory {
 public:
  RemoteMemory(shm::Connection& owner, shm::Use use) noexcept : owner_(owner) { owner_.enter(use); }
  ~RemoteMemory() { owner_.leave(); }
  RemoteMemory(const RemoteMemory&) = delete;
  RemoteMemory& operator=(const RemoteMemory&) = delete;

  /// Returns whether a system call has failed. The caller must then write everything again by another way.
  bool has_failed() const noexcept { return has_failed_; }

  // Regions --------------------------------------------------------------------------------------------------------

  /// Returns the place of the bytes in the owner's arena. Returns null if they are not there, or if queue pair or
  /// region does not permit the access.
  std::byte* find_mapped(const RegionRequest& request) const noexcept;
  /// Returns their address in the owner's process, inside or outside the arena. Returns nullopt on failure or refusal.
  std::optional<std::uint64_t> find_by_calls(const RegionRequest& request) noexcept;
  bool read(std::span<const iovec> to, std::uint64_t from, std::uint64_t bytes) noexcept;
  /// Stores the last word last.
  bool write(std::uint64_t to, std::span<const iovec> from, std::uint64_t bytes) noexcept;

  // Exposures ------------------------------------------------------------------------------------------------------

  /// Finds the exposure in the table. Returns nullopt if it is not there or does not fit the request.
  std::optional<ExposurePlace> find(const ExposureRequest& request) noexcept;
  /// Does the same for an exposure outside the arena, from the owner's private records.
  std::optional<ExposurePlace> find_by_calls(const ExposureRequest& request) noexcept;
  /// Claims the exposure for this initiator alone. Returns false if that is too late.
  bool claim(std::uint64_t key) noexcept { return exposure(key).claim(key, own_name()); }
  /// Copies the data. Returns false if a system call failed; the claim is then given back.
  bool copy(const ExposureRequest& request, const ExposurePlace& place, std::span<const iovec> pieces) noexcept;

 private:
  SharedTables& tables() const noexcept { return *reinterpret_cast<SharedTables*>(owner_.arena->head()); }
  PublishedExposure& exposure(std::uint64_t key) const noexcept {
    return tables().exposures[key % SharedTables::kExposures];
  }
  /// Returns the name by which the owner's table knows us.
  std::uint64_t own_name() const noexcept { return std::uint64_t{owner_.doorbell_bit} + 1; }
  bool note(bool is_done) noexcept {
    has_failed_ |= !is_done;
    return is_done;
  }

  shm::Connection& owner_;
  bool has_failed_ = false;
};

}  // namespace fairlead::onesided
