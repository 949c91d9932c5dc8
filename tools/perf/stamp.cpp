#include "tools/perf/stamp.hpp"

#include <cstring>

namespace fairlead::tools {
namespace {

constexpr std::size_t kStampStep = 512;

}  // namespace

// The offset is part of the stamp, so a misplaced piece has another number.
void write_stamps(std::span<std::byte> bytes, std::uint64_t number) {
  for (std::size_t at = 0; at + sizeof number <= bytes.size(); at += kStampStep) {
    const std::uint64_t stamp = number + at;
    std::memcpy(bytes.data() + at, &stamp, sizeof stamp);
  }
}

std::optional<std::uint64_t> read_stamps(std::span<const std::byte> bytes) {
  std::uint64_t first = 0;
  for (std::size_t at = 0; at + sizeof first <= bytes.size(); at += kStampStep) {
    std::uint64_t stamp;
    std::memcpy(&stamp, bytes.data() + at, sizeof stamp);
    if (at == 0) first = stamp;
    if (stamp != first + at) return {};
  }
  return first;
}

}  // namespace fairlead::tools
