#pragma once
// Protection domains and memory regions.

#include <cstdint>
#include <memory>
#include <optional>

#include <fairlead/error.hpp>
#include <fairlead/verbs/device.hpp>
#include <fairlead/verbs/types.hpp>
#include <fairlead/verbs/work_request.hpp>

namespace fairlead::verbs {

struct DomainState;
struct RegionState;

/// A protection domain groups objects that may be used together. Queue pairs of another domain refuse its keys.
class ProtectionDomain {
 public:
  [[nodiscard]] static Result<ProtectionDomain> allocate(const Context& context);
  /// EBUSY, and nothing changed, while it contains a region, queue pair, shared receive queue or address handle.
  [[nodiscard]] Result<> deallocate();

  const std::shared_ptr<DomainState>& state() const noexcept { return state_; }

 private:
  explicit ProtectionDomain(std::shared_ptr<DomainState> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<DomainState> state_;
};

/// What to register. `iova` is the address by which work requests name the first byte. Its default is `address`, or 0
/// with access::zero_based.
struct Registration {
  void* address = nullptr;
  std::uint64_t length = 0;  ///< bytes; 0 is allowed
  std::uint32_t access = 0;
  std::optional<std::uint64_t> iova{};
};

/// Memory of a peer. A write, read or atomic names it by `remote_addr` and `rkey`.
struct RemoteMemory {
  std::uint64_t address = 0;
  std::uint64_t length = 0;  ///< bytes
  std::uint32_t rkey = 0;
  bool operator==(const RemoteMemory&) const = default;
};

/// A memory region. Move-only; the destructor deregisters. Keys are not reused soon: a stale key matches none of the
/// next 260,000 regions.
class MemoryRegion {
 public:
  /// Registers memory of the caller. EINVAL: the access flags need local_write. EFAULT: the memory is not mapped, or
  /// not writable although local_write is requested. ENOMEM: a limit is reached. With access::on_demand, a null address
  /// and length UINT64_MAX, the region is the whole address space. Then each use asks the kernel whether the memory is
  /// mapped (a system call). Its memory may be unmapped at any time; requests that use unmapped memory fail.
  [[nodiscard]] static Result<MemoryRegion> add(const ProtectionDomain& domain, const Registration& registration);

  /// Allocates and registers memory: zeroed, in whole pages, freed with the region. Peers of this host can always
  /// access this memory directly. For other memory that depends on the threads of the program (docs/shm.md). Errors as
  /// add().
  [[nodiscard]] static Result<MemoryRegion> allocate(const ProtectionDomain& domain, std::uint64_t length,
                                                     std::uint32_t access);

  /// Makes a null region, for local use: data written to it is discarded, and zeros are read from it. It has no memory,
  /// so any address and length are inside. Peers cannot access it, windows cannot be bound to it, and it cannot be
  /// changed. EOPNOTSUPP: the host engine does not serve such regions.
  [[nodiscard]] static Result<MemoryRegion> null(const ProtectionDomain& domain);

  MemoryRegion(MemoryRegion&&) noexcept = default;
  MemoryRegion& operator=(MemoryRegion&&) noexcept;
  ~MemoryRegion();

  /// Deregisters the region with immediate effect: later use fails here with loc_prot_err and at peers with
  /// rem_access_err, also for requests in progress. Returns when nothing reads the memory any more, i.e. when data in
  /// flight from it is acknowledged or its peer is given up.
  Result<> remove();

  /// Changes place, access and domain in one step, or nothing on an error. Absent fields stay unchanged, and so do the
  /// keys.
  struct Change {
    std::optional<Registration> place{};  ///< address, length and iova; its access is ignored
    std::optional<std::uint32_t> access{};
    const ProtectionDomain* domain = nullptr;
  };
  [[nodiscard]] Result<> change(const Change& change);

  std::uint32_t lkey() const noexcept;
  std::uint32_t rkey() const noexcept;  ///< 0 for a null region
  void* address() const noexcept;
  std::uint64_t length() const noexcept;
  /// `length` bytes from `offset` on, as an Sge for local work requests. A range outside the region fails when it is
  /// used.
  Sge sge(std::uint64_t offset, std::uint32_t length) const noexcept;
  /// The region from `offset` on, as a peer names it.
  RemoteMemory remote(std::uint64_t offset = 0) const noexcept;

  const std::shared_ptr<RegionState>& state() const noexcept { return state_; }

 private:
  static Result<MemoryRegion> add_to(std::shared_ptr<RegionState> state, const Registration& registration);
  static Result<MemoryRegion> add_to(std::shared_ptr<RegionState> state);
  explicit MemoryRegion(std::shared_ptr<RegionState> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<RegionState> state_;
};

}  // namespace fairlead::verbs
