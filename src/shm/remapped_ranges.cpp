#include "shm/remapped_ranges.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "base/file_signals.hpp"
#include "base/process_mark.hpp"
#include "base/process_memory.hpp"

namespace fairlead::shm {
namespace {

// All remapped ranges of the process, for the child of a fork().
struct Moved {
  std::span<std::byte> pages;
  int file = -1;
  std::uint64_t offset = 0;
};
struct MovedPages {
  std::mutex mutex;
  std::vector<Moved> all;
};

void make_private_in_child();

// Never destroyed, because engines may outlive static objects.
MovedPages& all_moved() {
  static auto* the_pages = [] {
    base::at_fork({.before = [] { all_moved().mutex.lock(); },
                   .in_parent = [] { all_moved().mutex.unlock(); },
                   .in_child = &make_private_in_child});
    return new MovedPages;
  }();
  return *the_pages;
}

// The child must not write into the parent's memory. It sees the parent's later stores to a page until it stores there
// itself.
void make_private_in_child() {
  for (const Moved& moved : all_moved().all) {
    if (::mmap(moved.pages.data(), moved.pages.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE,
               moved.file, static_cast<off_t>(moved.offset)) == MAP_FAILED) {
      ::mprotect(moved.pages.data(), moved.pages.size(), PROT_READ);
    }
  }
  all_moved().all.clear();
  all_moved().mutex.unlock();
}

/// Blocks signals in the calling thread: a handler could store between copy and mapping.
class NoHandlers {
 public:
  NoHandlers() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoHandlers() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoHandlers(const NoHandlers&) = delete;
  NoHandlers& operator=(const NoHandlers&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

// Allocations lie in the arena's own mapping, which needs a single entry.
RemappedRanges::RemappedRanges(Arena& arena, std::uint64_t huge_max) : arena_(arena), huge_max_(huge_max) {
  const std::scoped_lock lock(all_moved().mutex);
  all_moved().all.push_back({{arena.head(), arena.bytes()}, arena.descriptor(), 0});
}

RemappedRanges::~RemappedRanges() {
  for (const Remap& remap : remaps_) {
    if (remap.users != 0 && !remap.is_ours) move_out(remap, false);
  }
  const std::scoped_lock lock(all_moved().mutex);
  std::erase_if(all_moved().all, [&](const Moved& moved) { return moved.pages.data() == arena_.head(); });
}

std::uint64_t RemappedRanges::bytes() const noexcept {
  const std::scoped_lock lock(mutex_);
  return bytes_;
}

std::uint64_t RemappedRanges::huge_bytes() const noexcept {
  const std::scoped_lock lock(mutex_);
  return huge_bytes_;
}

std::uint64_t RemappedRanges::left_in_place() const noexcept {
  const std::scoped_lock lock(mutex_);
  return left_in_place_;
}

/// Finds a range that lies completely in one remapped range, and adds a user to it.
std::optional<RangePlace> RemappedRanges::find(std::span<std::byte> range, std::uint64_t before) {
  const auto after = by_begin_.upper_bound(range.data());
  if (after == by_begin_.begin()) return std::nullopt;
  const std::uint32_t number = std::prev(after)->second;
  Remap& found = remaps_[number];
  if (range.data() + range.size() > found.pages.data() + found.pages.size()) return std::nullopt;
  ++found.users;
  return RangePlace{before, before + range.size(),
                    found.offset + static_cast<std::uint64_t>(range.data() - found.pages.data()), number};
}

std::optional<std::uint64_t> RemappedRanges::place_of(std::span<const std::byte> range) const noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return std::nullopt;
  const auto after = by_begin_.upper_bound(range.data());
  if (after == by_begin_.begin()) return std::nullopt;
  const Remap& found = remaps_[std::prev(after)->second];
  const auto before = static_cast<std::uint64_t>(range.data() - found.pages.data());
  if (before > found.pages.size() || range.size() > found.pages.size() - before) return std::nullopt;
  return found.offset + before;
}

std::optional<RangePlace> RemappedRanges::take(std::span<std::byte> range, bool is_alone) {
  constexpr std::uintptr_t kPage = 4096;
  if (range.empty()) return std::nullopt;
  const std::scoped_lock lock(mutex_);
  if (auto known = find(range, 0)) return known;
  const auto first = reinterpret_cast<std::uintptr_t>(range.data());
  const std::uintptr_t begin = (first + kPage - 1) & ~(kPage - 1), end = (first + range.size()) & ~(kPage - 1);
  if (begin >= end) return std::nullopt;
  const std::span pages(range.data() + (begin - first), end - begin);
  if (auto known = find(pages, begin - first)) return known;
  if (!is_alone || pages.size() > kMovedMost) return std::nullopt;
  if (apart_ >= kApartMost) {
    ++left_in_place_;
    return std::nullopt;
  }
  if (!base::is_private_memory(pages)) return std::nullopt;
  const auto offset = arena_.take(pages.size());
  if (!offset) return std::nullopt;
  const std::size_t moved = move_in(pages, *offset);
  if (moved < pages.size()) arena_.give_back(*offset + moved, pages.size() - moved);
  if (moved == 0) return std::nullopt;
  const std::uint32_t remap = add({.pages = pages.first(moved), .offset = *offset, .users = 1});
  return RangePlace{begin - first, begin - first + moved, *offset, remap};
}

/// Returns the part at the start of `pages` that one remapped range covers. If there is none, sets `unmoved` to the
/// number of bytes before the next remapped range.
std::optional<RangePlace> RemappedRanges::find_front(std::span<std::byte> pages, std::size_t& unmoved) {
  const std::scoped_lock lock(mutex_);
  const auto after = by_begin_.upper_bound(pages.data());
  unmoved = after == by_begin_.end() ? pages.size() : std::min<std::size_t>(pages.size(), after->first - pages.data());
  if (after == by_begin_.begin()) return std::nullopt;
  const std::uint32_t number = std::prev(after)->second;
  Remap& found = remaps_[number];
  const auto skipped = static_cast<std::uint64_t>(pages.data() - found.pages.data());
  if (skipped >= found.pages.size()) return std::nullopt;
  ++found.users;
  return RangePlace{0, std::min<std::uint64_t>(pages.size(), found.pages.size() - skipped), found.offset + skipped,
                    number};
}

std::vector<RangePlace> RemappedRanges::take_all(std::span<std::byte> pages, bool is_alone) {
  std::vector<RangePlace> taken;
  for (std::size_t done = 0; done < pages.size();) {
    std::size_t unmoved = 0;
    auto place = find_front(pages.subspan(done), unmoved);
    const bool is_moved = place.has_value();
    if (!is_moved) place = take(pages.subspan(done, unmoved), is_alone);
    if (place) taken.push_back(*place);
    if (!place || (!is_moved && (place->begin != 0 || place->end != unmoved))) {
      for (const RangePlace& each : taken) release(each.remap, is_alone);
      return {};
    }
    taken.back().begin = done;
    done += place->end;
    taken.back().end = done;
  }
  return taken;
}

std::uint32_t RemappedRanges::add(const Remap& remap) {
  if (unused_.empty()) {
    unused_.push_back(static_cast<std::uint32_t>(remaps_.size()));
    remaps_.emplace_back();
  }
  const std::uint32_t number = unused_.back();
  unused_.pop_back();
  remaps_[number] = remap;
  bytes_ += remap.pages.size();
  if (remap.is_huge) huge_bytes_ += remap.pages.size();
  by_begin_.emplace(remap.pages.data(), number);
  if (remap.is_ours) return number;
  ++apart_;
  const std::scoped_lock lock(all_moved().mutex);
  all_moved().all.push_back({remap.pages, arena_.descriptor(), remap.offset});
  return number;
}

void RemappedRanges::forget(const Remap& remap) {
  bytes_ -= remap.pages.size();
  if (remap.is_huge) huge_bytes_ -= remap.pages.size();
  const auto [first, last] = by_begin_.equal_range(remap.pages.data());
  by_begin_.erase(std::find_if(first, last, [&](const auto& each) { return &remaps_[each.second] == &remap; }));
  if (remap.is_ours) return;
  const std::scoped_lock lock(all_moved().mutex);
  std::erase_if(all_moved().all,
                [&](const Moved& moved) { return moved.file == arena_.descriptor() && moved.offset == remap.offset; });
}

std::span<std::byte> RemappedRanges::allocate(std::uint64_t bytes) {
  if (bytes == 0 || bytes > Arena::kBytesMost) return {};
  const std::uint64_t whole = (bytes + 4095) & ~std::uint64_t{4095};
  const std::scoped_lock lock(mutex_);
  const auto offset = arena_.take(whole, whole >= Arena::kHugePage ? Arena::kHugePage : 4096);
  if (!offset) return {};
  const std::span memory(arena_.head() + *offset, whole);
  const bool is_huge = whole >= Arena::kHugePage && whole <= huge_max_ && arena_.make_huge(*offset, whole);
  add({.pages = memory, .offset = *offset, .users = 1, .is_ours = true, .is_huge = is_huge});
  return memory;
}

void RemappedRanges::free(std::span<std::byte> memory) {
  const std::scoped_lock lock(mutex_);
  const auto found = by_begin_.find(memory.data());
  if (found != by_begin_.end()) release_one(found->second, false);
}

void RemappedRanges::release(std::uint32_t number, bool is_alone) {
  const std::scoped_lock lock(mutex_);
  release_one(number, is_alone);
}

void RemappedRanges::release_one(std::uint32_t number, bool is_alone) {
  Remap& remap = remaps_[number];
  if (--remap.users != 0) return;
  unused_.push_back(number);
  if (!remap.is_ours) return move_out(remap, is_alone);
  forget(remap);
  arena_.give_back(remap.offset, remap.pages.size());
}

/// Moves the pages in pieces, so that only one piece needs its memory twice. Returns the number of bytes moved.
std::size_t RemappedRanges::move_in(std::span<std::byte> pages, std::uint64_t offset) const {
  constexpr std::size_t kPiece = std::size_t{16} << 20;
  const NoHandlers still;
  for (std::size_t done = 0; done < pages.size(); done += std::min(kPiece, pages.size() - done)) {
    const auto piece = pages.subspan(done, std::min(kPiece, pages.size() - done));
    if (!base::write_all_at(arena_.descriptor(), piece, offset + done) ||
        ::mmap(piece.data(), piece.size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
               arena_.descriptor(), static_cast<off_t>(offset + done)) == MAP_FAILED) {
      return done;
    }
  }
  return pages.size();
}

// Does not touch pages that the program has unmapped meanwhile: something else may be there.
void RemappedRanges::move_out(const Remap& remap, bool is_alone) {
  forget(remap);
  std::byte* const at = remap.pages.data();
  const std::size_t bytes = remap.pages.size();
  if (!base::is_mapped_from(remap.pages, arena_.descriptor(), remap.offset)) {
    if (!base::has_any_of(remap.pages, arena_.descriptor())) {
      arena_.give_back(remap.offset, bytes);
      --apart_;
    }
    return;
  }
  if (is_alone) {
    // A fresh anonymous mapping merges with its neighbours.
    const NoHandlers still;
    const std::uint64_t offset = remap.offset;
    const std::byte* const from = arena_.head() + offset;  // our own objects may lie in these pages
    const int file = arena_.descriptor();
    if (::mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED) {
      if (!base::read_all_at(file, {at, bytes}, offset)) std::memcpy(at, from, bytes);
      arena_.give_back(offset, bytes);
      --apart_;
      return;
    }
  }
  // Other threads may be writing. In one step, the same file becomes a private view, and each store then copies its
  // page. Populating it makes the file unnecessary. Its place is not reused, because the view would show new contents
  // in any page that the program discards.
  if (::mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, arena_.descriptor(),
             static_cast<off_t>(remap.offset)) == MAP_FAILED) {
    return;
  }
  if (::madvise(at, bytes, MADV_POPULATE_WRITE) == 0) arena_.empty(remap.offset, bytes);
}

}  // namespace fairlead::shm
