#pragma once
// Pieces of an application's memory, mapped one behind the other, so that a region of them has one address here.

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

  /// Of the file, which is sealed against shrinking; whole pages within it.
  static Result<JoinedMemory> map(int file, std::span<const MemoryPiece> pieces);

  std::byte* begin() const noexcept { return mapping_.data(); }

 private:
  explicit JoinedMemory(std::span<std::byte> mapping) : mapping_(mapping) {}

  std::span<std::byte> mapping_;
};

}  // namespace fairlead::host
