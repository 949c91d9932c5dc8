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

/// Who may be used together: a key is refused by queue pairs of another domain.
class ProtectionDomain {
 public:
  [[nodiscard]] static Result<ProtectionDomain> allocate(const Context& context);
  /// EBUSY, and nothing changed, while a region, queue pair, shared receive queue or address handle is left in it.
  Result<> deallocate();

  const std::shared_ptr<DomainState>& state() const noexcept { return state_; }

 private:
  explicit ProtectionDomain(std::shared_ptr<DomainState> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<DomainState> state_;
};

/// What to register. `iova` is the address that work requests use for the first byte: by default the address itself,
/// 0 with access::zero_based.
struct Registration {
  void* address = nullptr;
  std::uint64_t length = 0;  ///< bytes; 0 is allowed
  std::uint32_t access = 0;
  std::optional<std::uint64_t> iova{};
};

/// Memory of a peer. A write, a read or an atomic names it by `remote_addr` and `rkey`.
struct RemoteMemory {
  std::uint64_t address = 0;
  std::uint64_t length = 0;  ///< bytes
  std::uint32_t rkey = 0;
  bool operator==(const RemoteMemory&) const = default;
};

/// Move-only; the destructor deregisters. Keys are used up slowly: a stale one matches none of the next 200,000
/// regions.
class MemoryRegion {
 public:
  /// EINVAL: rights that need local_write without it; EFAULT: not mapped, or not writable though local_write is asked
  /// for; ENOMEM: limits. With access::on_demand, no address and length UINT64_MAX it is the whole address space: each
  /// use asks the kernel whether the memory is there (a system call), and what must not be unmapped is what is in use.
  [[nodiscard]] static Result<MemoryRegion> add(const ProtectionDomain& domain, const Registration& registration);

  /// Registers memory of its own: zeroed, in whole pages, gone with the region. Peers of this host reach it by
  /// themselves whatever threads this program has, which is not sure of other memory (docs/shm.md). Errors as add().
  [[nodiscard]] static Result<MemoryRegion> allocate(const ProtectionDomain& domain, std::uint64_t length,
                                                     std::uint32_t access);

  MemoryRegion(MemoryRegion&&) noexcept = default;
  MemoryRegion& operator=(MemoryRegion&&) noexcept;
  ~MemoryRegion();

  /// Takes effect at once: later use fails here with loc_prot_err and at peers with rem_access_err, also of requests
  /// under way. Returns when nothing reads the memory any more, which takes as long as what is in flight to a peer.
  Result<> remove();

  /// Changes place, rights and domain in one step or not at all; absent is unchanged. The keys stay.
  struct Change {
    std::optional<Registration> place{};  ///< address, length and iova; its access is ignored
    std::optional<std::uint32_t> access{};
    const ProtectionDomain* domain = nullptr;
  };
  [[nodiscard]] Result<> change(const Change& change);

  std::uint32_t lkey() const noexcept;
  std::uint32_t rkey() const noexcept;
  void* address() const noexcept;
  std::uint64_t length() const noexcept;
  /// `length` bytes of it from `offset` on, as a work request here names them. What is not inside it fails when it is
  /// used.
  Sge sge(std::uint64_t offset, std::uint32_t length) const noexcept;
  /// All of it from `offset` on, as a peer names it.
  RemoteMemory remote(std::uint64_t offset = 0) const noexcept;

  const std::shared_ptr<RegionState>& state() const noexcept { return state_; }

 private:
  static Result<MemoryRegion> add_to(std::shared_ptr<RegionState> state, const Registration& registration);
  explicit MemoryRegion(std::shared_ptr<RegionState> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<RegionState> state_;
};

}  // namespace fairlead::verbs
