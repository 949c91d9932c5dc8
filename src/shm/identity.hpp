#pragma once
// Proves to peers that the memory which they read by PID really belongs to this process: a nonce at an address that the
// greeting names. Behind it lie records that only this process can write, unlike those in the arena. Peers must be able
// to trust the records that lead to memory outside the arena.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <fairlead/error.hpp>

namespace fairlead::shm {

using Nonce = std::array<std::uint64_t, 2>;

class Identity {
 public:
  static constexpr std::size_t kRecordsAt = 4096;  // after the nonce

  Identity() = default;
  Identity(Identity&& other) noexcept;
  Identity& operator=(Identity&& other) noexcept;
  ~Identity();

  /// Creates an identity with `record_bytes` zeroed bytes of records. Costs address space, not memory. A forked child
  /// does not inherit the mapping.
  static Result<Identity> create(std::size_t record_bytes);

  const Nonce& nonce() const noexcept { return *reinterpret_cast<const Nonce*>(mapping_.data()); }
  std::uint64_t address() const noexcept { return reinterpret_cast<std::uintptr_t>(mapping_.data()); }
  std::byte* records() const noexcept { return mapping_.data() + kRecordsAt; }

 private:
  std::span<std::byte> mapping_;
};

}  // namespace fairlead::shm
