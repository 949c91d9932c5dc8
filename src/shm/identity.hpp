#pragma once
// By what others know that the memory they read by a process number is really ours: random words at a place that the
// greeting names. Behind them lie records that, unlike those in the arena, only we can write: what leads to memory
// outside the arena has to be believed, and every peer can write to the arena.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <fairlead/error.hpp>

namespace fairlead::shm {

using Nonce = std::array<std::uint64_t, 2>;

class Identity {
 public:
  static constexpr std::size_t kRecordsAt = 4096;  // behind the random words

  Identity() = default;
  Identity(Identity&& other) noexcept;
  Identity& operator=(Identity&& other) noexcept;
  ~Identity();

  /// With so many bytes of records, zeroed. Costs address space, not memory. A forked child does not have it.
  static Result<Identity> create(std::size_t record_bytes);

  const Nonce& nonce() const noexcept { return *reinterpret_cast<const Nonce*>(mapping_.data()); }
  std::uint64_t address() const noexcept { return reinterpret_cast<std::uintptr_t>(mapping_.data()); }
  std::byte* records() const noexcept { return mapping_.data() + kRecordsAt; }

 private:
  std::span<std::byte> mapping_;
};

}  // namespace fairlead::shm
