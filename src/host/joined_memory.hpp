#pragma once
// Maps pieces of an application's memory consecutively, so that a region of several pieces is contiguous here.

#include <cstddef>
#include <span>

#include <fairlead/error.hpp>

#include "host/pair_layout.hpp"

namespace fairlead::host {

class JoinedMemory {
 public:
  JoinedMemory() = default;
  JoinedMemory(JoinedMemory&& other) noexcept;
  JoinedMemory& operator=(JoinedMemory&& other) noexcept;
  ~JoinedMemory();

  /// Maps whole pages of `file`, which must be sealed against shrinking.
  static Result<JoinedMemory> map(int file, std::span<const MemoryPiece> pieces);

  std::byte* begin() const noexcept { return mapping_.data(); }

 private:
  explicit JoinedMemory(std::span<std::byte> mapping) : mapping_(mapping) {}

  std::span<std::byte> mapping_;
};

}  // namespace fairlead::host
