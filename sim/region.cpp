#include "sim/region.hpp"

#include <algorithm>
#include <bit>

namespace fairlead::sim {
namespace {

constexpr std::byte kPoison{0xdb};

std::size_t class_of(std::size_t size) {
  return static_cast<std::size_t>(std::bit_width(std::max<std::size_t>(size, 64) - 1));
}

}  // namespace

Region::Region(std::size_t capacity) : memory_(capacity + 2 * kGuard, kPoison) {}

std::unique_ptr<Region> RegionPool::lend(std::size_t size, Findings& findings) {
  auto& kept = free_[class_of(size)];
  const std::size_t capacity = std::size_t{1} << class_of(size);
  const std::size_t kept_max = std::clamp<std::size_t>(kKeptBytesInClass / capacity, 1, kKeptInClassMax);
  std::unique_ptr<Region> region;
  if (kept.size() >= kept_max) {
    region = std::move(kept.front());
    kept.erase(kept.begin());
    check_poison(*region, findings);
  } else {
    region = std::make_unique<Region>(capacity);
  }
  region->size_ = size;
  region->pieces_.clear();
  std::byte* const first = region->bytes().data();
  std::size_t begin = 0;
  for (std::uint64_t left = random_.between(1, 4); left > 0; --left) {
    const std::size_t end = left == 1 ? size : begin + random_.below(size - begin + 1);
    region->pieces_.push_back({first + begin, end - begin});
    begin = end;
  }
  return region;
}

void RegionPool::give_back(std::unique_ptr<Region> region, Findings& findings) {
  check_guards(*region, findings);
  std::ranges::fill(region->bytes(), kPoison);
  free_[class_of(region->size_)].push_back(std::move(region));
}

void RegionPool::check(Findings& findings) const {
  for (const auto& kept : free_) {
    for (const auto& region : kept) check_poison(*region, findings);
  }
}

void RegionPool::check_guards(const Region& region, Findings& findings) {
  const auto is_intact = [](std::span<const std::byte> bytes) {
    return std::ranges::all_of(bytes, [](std::byte byte) { return byte == kPoison; });
  };
  const std::span memory(region.memory_);
  SIM_CHECK(findings,
            is_intact(memory.first(Region::kGuard)) && is_intact(memory.subspan(Region::kGuard + region.size_)),
            "bytes beside a buffer of {} bytes were written", region.size_);
}

void RegionPool::check_poison(const Region& region, Findings& findings) {
  const auto wrong = std::ranges::find_if(region.memory_, [](std::byte byte) { return byte != kPoison; });
  SIM_CHECK(findings, wrong == region.memory_.end(),
            "byte {} of a buffer of {} bytes was written after its operation had ended",
            wrong - region.memory_.begin() - static_cast<std::ptrdiff_t>(Region::kGuard), region.size_);
}

}  // namespace fairlead::sim
