#include "tools/nettest/stamp.hpp"

#include <algorithm>
#include <cstring>

namespace fairlead::tools {
namespace {

constexpr std::uint32_t kMagic = 0x7473'746e;  // "ntst"

struct Layout {
  std::uint32_t magic;
  std::uint32_t slot;
  std::uint64_t client;
  std::uint64_t sequence;
  std::uint64_t none;
};
static_assert(sizeof(Layout) == kStampBytes);

}  // namespace

void write_stamp(std::span<std::byte> to, const NettestStamp& stamp) {
  const Layout layout{kMagic, stamp.slot, stamp.client, stamp.sequence, 0};
  std::ranges::copy(std::as_bytes(std::span(&layout, 1)), to.begin());
}

std::optional<NettestStamp> read_stamp(std::span<const std::byte> from) {
  if (from.size() < sizeof(Layout)) return std::nullopt;
  Layout layout;
  std::memcpy(&layout, from.data(), sizeof layout);
  if (layout.magic != kMagic) return std::nullopt;
  return NettestStamp{.client = layout.client, .slot = layout.slot, .sequence = layout.sequence};
}

}  // namespace fairlead::tools
