// Memory that peers access directly: the arena, memory moved into it in place, and tracking of its users.
#include "shm/arena.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include <fmt/format.h>

#include "base/place_for_tests.hpp"
#include "base/process_memory.hpp"
#include "shm/connections.hpp"

namespace fairlead::shm {
namespace {

constexpr std::size_t kPages = 4096, kHead = 8 * kPages, kArena = 64 * kPages;

std::span<std::byte> map_private(std::size_t bytes) {
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return {static_cast<std::byte*>(at), at == MAP_FAILED ? 0 : bytes};
}

TEST(Arena, GivesPlacesAndTakesThemBack) {
  auto arena = Arena::create(kHead, kArena).value();
  const auto first = arena.take(8 * kPages), second = arena.take(40 * kPages), third = arena.take(8 * kPages);
  EXPECT_EQ(first, kHead);
  EXPECT_EQ(second, kHead + 8 * kPages);
  EXPECT_EQ(third, kHead + 48 * kPages);
  EXPECT_FALSE(arena.take(kPages)) << "all of it is in use";
  arena.head()[*second] = std::byte{7};
  arena.give_back(*first, 8 * kPages);
  arena.give_back(*third, 8 * kPages);
  EXPECT_FALSE(arena.take(9 * kPages));
  arena.give_back(*second, 40 * kPages);
  EXPECT_EQ(arena.head()[*second], std::byte{0}) << "its memory went back to the kernel";
  EXPECT_EQ(arena.take(56 * kPages), kHead) << "mapped_peers are one";
}

TEST(Arena, AViewIsRefusedUnlessItIsWhatWasSaid) {
  const auto arena = Arena::create(kHead, kArena).value();
  const int copy = arena.descriptor();
  EXPECT_TRUE(Arena::view(copy, kArena));
  EXPECT_FALSE(Arena::view(copy, kArena + kPages));
  EXPECT_FALSE(Arena::view(copy, 100));
  EXPECT_FALSE(Arena::view(base::FileDescriptor(::memfd_create("unsealed", MFD_CLOEXEC)).get(), kArena));
  EXPECT_FALSE(Arena::view(-1, kArena));
}

/// Returns the bytes of the mapping at `at` that lie in huge pages, according to the kernel.
std::uint64_t huge_bytes_at(const void* at) {
  std::ifstream maps("/proc/self/smaps");
  const std::string wanted = fmt::format("{:08x}-", reinterpret_cast<std::uintptr_t>(at));
  bool is_there = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find('-') < line.find(' ')) is_there = line.starts_with(wanted);
    if (is_there && line.starts_with("ShmemPmdMapped:")) return std::strtoull(line.c_str() + 15, nullptr, 10) << 10;
  }
  return 0;
}

/// Returns whether the kernel makes huge pages of a memfd on request, by trying.
bool has_huge_pages() {
  constexpr int kCollapse = 25;  // MADV_COLLAPSE
  constexpr std::size_t kHuge = Arena::kHugePage;
  const base::FileDescriptor file(::memfd_create("huge", MFD_CLOEXEC));
  if (::ftruncate(file.get(), kHuge) != 0) return false;
  const auto room = map_private(2 * kHuge);
  const auto place = (reinterpret_cast<std::uintptr_t>(room.data()) + kHuge - 1) / kHuge * kHuge;
  void* at =
      ::mmap(reinterpret_cast<void*>(place), kHuge, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file.get(), 0);
  std::memset(at, 1, 1);
  const bool is_huge = ::madvise(at, kHuge, kCollapse) == 0;
  ::munmap(room.data(), room.size());
  return is_huge;
}

TEST(Arena, TakesHugePagesWhereTheKernelHasThem) {
  if (!has_huge_pages()) GTEST_SKIP() << "the kernel makes no huge pages of files in memory";
  constexpr std::uint64_t kHuge = Arena::kHugePage;
  auto arena = Arena::create(kHead, 8 * kHuge).value();
  RemappedRanges remapped(arena, 2 * kHuge);
  const auto small = remapped.allocate(kHuge - 4096), large = remapped.allocate(kHuge + 1),
             huge = remapped.allocate(3 * kHuge);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(large.data()) % kHuge, 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(huge.data()) % kHuge, 0u);
  EXPECT_EQ(remapped.huge_bytes(), large.size()) << "one of them is below the limit";
  EXPECT_EQ(huge_bytes_at(arena.head()), kHuge) << "of the arena's one mapping";
  for (const auto memory : {small, large, huge}) {
    EXPECT_EQ(memory.front(), std::byte{0});
    EXPECT_EQ(memory.back(), std::byte{0});
    std::memset(memory.data(), 1, memory.size());
  }
  const auto view = Arena::view(arena.descriptor(), 8 * kHuge).value();
  EXPECT_EQ(view.head()[arena.find(large).value() + kHuge], std::byte{1});
  remapped.free(large);
  EXPECT_EQ(remapped.huge_bytes(), 0u);
  EXPECT_EQ(large.front(), std::byte{0}) << "its memory went back to the kernel";
}

class RemappedMemory : public testing::Test {
 protected:
  void SetUp() override {
    view_ = Arena::view(arena_.descriptor(), kArena).value();
    memory_ = map_private(10 * kPages);
    for (std::size_t i = 0; i < memory_.size(); ++i) memory_[i] = static_cast<std::byte>(i * 7 >> 3);
    before_.assign(memory_.begin(), memory_.end());
  }
  void TearDown() override { ::munmap(memory_.data(), memory_.size()); }
  bool is_unchanged() const { return std::equal(before_.begin(), before_.end(), memory_.begin()); }

  Arena arena_ = Arena::create(kHead, kArena).value();
  RemappedRanges remaps_{arena_};
  Memory view_;
  std::span<std::byte> memory_;
  std::vector<std::byte> before_;
};

TEST_F(RemappedMemory, MoveWholePagesInPlaceAndBack) {
  for (const bool is_alone : {true, false}) {
    const auto range = memory_.subspan(100, 8 * kPages);
    const auto place = remaps_.take(range, true);
    ASSERT_TRUE(place);
    EXPECT_EQ(place->begin, kPages - 100);
    EXPECT_EQ(place->end, 8 * kPages - 100);
    EXPECT_TRUE(is_unchanged());
    EXPECT_EQ(std::memcmp(view_.head() + place->offset, range.data() + place->begin, place->end - place->begin), 0);
    view_.head()[place->offset + 5] = std::byte{0xAB};
    EXPECT_EQ(range[place->begin + 5], std::byte{0xAB});
    view_.head()[place->offset + 5] = before_[kPages + 5];
    remaps_.release(place->remap, is_alone);
    EXPECT_TRUE(is_unchanged());
    view_.head()[place->offset + 5] = std::byte{0xAB};
    EXPECT_TRUE(is_unchanged()) << "nobody else reaches it any more";
    EXPECT_TRUE(base::is_private_memory(memory_));
  }
  EXPECT_EQ(remaps_.bytes(), 0u);
}

TEST_F(RemappedMemory, AreSharedByAllThatLieInThem) {
  const auto whole = remaps_.take(memory_, true);
  const auto part = remaps_.take(memory_.subspan(3 * kPages, kPages), false);
  ASSERT_TRUE(whole && part);
  EXPECT_EQ(part->remap, whole->remap);
  EXPECT_EQ(part->offset, whole->offset + 3 * kPages);
  remaps_.release(whole->remap, true);
  view_.head()[part->offset] = std::byte{0xCD};
  EXPECT_EQ(memory_[3 * kPages], std::byte{0xCD}) << "still in use";
  remaps_.release(part->remap, true);
}

TEST_F(RemappedMemory, OtherMemoryStaysWhereItIs) {
  EXPECT_FALSE(remaps_.take(memory_, false)) << "somebody could write meanwhile";
  EXPECT_FALSE(remaps_.take(memory_.subspan(1, kPages), true)) << "no whole page";
  ASSERT_EQ(::mprotect(memory_.data() + kPages, kPages, PROT_READ), 0);
  EXPECT_FALSE(remaps_.take(memory_, true)) << "not all of it can be written";
  ASSERT_EQ(::mprotect(memory_.data() + kPages, kPages, PROT_READ | PROT_WRITE), 0);
  void* shared = ::mmap(nullptr, kPages, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  EXPECT_FALSE(remaps_.take({static_cast<std::byte*>(shared), kPages}, true));
  ::munmap(shared, kPages);
  // A local array would do, except that AddressSanitizer may allocate it elsewhere.
  const auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) & ~std::uintptr_t{4095};
  EXPECT_FALSE(remaps_.take({reinterpret_cast<std::byte*>(frame), 4096}, true)) << "a stack";
  const auto large = map_private(kArena);
  EXPECT_FALSE(remaps_.take(large, true)) << "no room";
  ::munmap(large.data(), large.size());
  EXPECT_TRUE(is_unchanged());
}

std::size_t mapping_count() {
  std::ifstream maps("/proc/self/maps");
  return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(maps), {}, '\n'));
}

/// Returns the number of bytes that this process has read so far.
std::uint64_t bytes_read() {
  std::ifstream io("/proc/self/io");
  std::string name;
  std::uint64_t bytes = 0;
  io >> name >> bytes;
  EXPECT_EQ(name, "rchar:");
  return bytes;
}

// A thousand regions with gaps: 512 are moved. The others cost neither a mapping nor a scan of all mappings, and at the
// end there is one mapping again.
TEST(RemappedRanges, PartABoundedNumberOfMappings) {
  constexpr std::uint32_t kMost = RemappedRanges::kApartMost, kTried = 2 * kMost;
  constexpr std::size_t kOthers = 64;  // mappings that the allocator may add meanwhile
  auto arena = Arena::create(kHead, kHead + kTried * kPages).value();
  RemappedRanges remaps(arena);
  const auto memory = map_private(2 * kTried * kPages);
  std::memset(memory.data(), 7, memory.size());
  const auto range = [&](std::uint32_t i) { return memory.subspan(2 * i * kPages, kPages); };
  const std::size_t before = mapping_count();
  std::vector<std::uint32_t> moved;
  for (std::uint32_t i = 0; i < kMost; ++i) {
    const auto place = remaps.take(range(i), true);
    ASSERT_TRUE(place);
    moved.push_back(place->remap);
  }
  const std::size_t parted = mapping_count();
  EXPECT_LE(parted, before + 2 * kMost + kOthers);
  const std::uint64_t read = bytes_read();
  for (std::uint32_t i = kMost; i < kTried; ++i) EXPECT_FALSE(remaps.take(range(i), true));
  EXPECT_LT(bytes_read() - read, 4096u) << "one look at the mappings takes more";
  EXPECT_EQ(mapping_count(), parted);
  EXPECT_EQ(remaps.left_in_place(), kTried - kMost);
  EXPECT_EQ(remaps.take(range(3), true)->remap, moved[3]) << "it is there";
  remaps.release(moved[3], true);
  for (const std::uint32_t remap : moved) remaps.release(remap, true);
  EXPECT_LE(mapping_count(), before + kOthers);
  EXPECT_TRUE(std::ranges::all_of(memory, [](std::byte each) { return each == std::byte{7}; }));
  EXPECT_TRUE(remaps.take(range(kMost), true)) << "there is room again";
  ::munmap(memory.data(), memory.size());
}

TEST_F(RemappedMemory, WhatTheProgramMappedThereMeanwhileIsLeftAlone) {
  const auto place = remaps_.take(memory_, true);
  ASSERT_TRUE(place);
  ASSERT_NE(
      ::mmap(memory_.data() + kPages, kPages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
      MAP_FAILED);
  memory_[kPages] = std::byte{0x11};
  remaps_.release(place->remap, true);
  EXPECT_EQ(memory_[kPages], std::byte{0x11});
  const auto freed = map_private(16 * kPages);
  const auto other = remaps_.take(freed, true);
  ASSERT_TRUE(other);
  ::munmap(freed.data(), freed.size());
  remaps_.release(other->remap, true);
  EXPECT_EQ(arena_.take(16 * kPages), other->offset) << "what is mapped no more is given back";
}

TEST(ReadSections, WhoWithdrawsWaitsForThoseInsideUntilTheyLeaveOrEnd) {
  const auto place = [](std::uint16_t number) { return base::place_for_tests(number); };
  const ConnectionOptions options{.ring_bytes = 64 * 1024, .arena_bytes = kArena, .arena_head_bytes = kHead};
  const auto owner = Connections::open(place(0), 1, options).value();
  auto guest = Connections::open(place(1), 2, options).value();
  ASSERT_TRUE(guest->ask(place(0), {}));
  owner->attend({});
  guest->attend({});
  Connection& there = guest->peer(guest->find(place(0)));
  ASSERT_EQ(there.arena_bytes, kArena);
  owner->arena()->head()[kHead] = std::byte{9};
  EXPECT_EQ(there.arena->head()[kHead], std::byte{9});
  const ReadSections& sections = owner->read_sections();
  EXPECT_TRUE(sections.readers(Withdrawn::region(5)).empty());
  there.enter(Use::of_region(5, 9));
  EXPECT_TRUE(sections.readers(Withdrawn::region(6)).empty()) << "it is elsewhere";
  EXPECT_TRUE(sections.readers(Withdrawn::pair(8)).empty());
  EXPECT_EQ(sections.readers(Withdrawn::pair(9)).size(), 1u);
  auto readers = sections.readers(Withdrawn::region(5));
  ASSERT_EQ(readers.size(), 1u);
  EXPECT_FALSE(sections.has_left(readers[0]));
  there.leave();
  EXPECT_TRUE(sections.has_left(readers[0]));
  there.enter(Use::of_region(5, 9));
  EXPECT_TRUE(sections.has_left(readers[0])) << "that is another use";
  readers = sections.readers(Withdrawn::region(5));
  ASSERT_EQ(readers.size(), 1u);
  guest.reset();
  owner->attend({});
  while (const auto event = owner->next_event()) {
    if (event->kind == ConnectionEvent::Kind::ended) owner->forget(event->slot);
  }
  EXPECT_TRUE(sections.has_left(readers[0])) << "who is gone is not inside";
}

}  // namespace
}  // namespace fairlead::shm
