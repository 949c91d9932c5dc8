#include "base/process_memory.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

namespace fairlead::base {
namespace {

struct Mapping {
  std::uint64_t begin = 0, end = 0, offset = 0;
  unsigned device_major = 0, device_minor = 0;
  std::uint64_t inode = 0;
  char rights[5] = {};
  std::string_view name;
};

/// Calls visit(mapping) for each mapping that overlaps the pages, in order, until it returns false. Returns false on
/// failure.
template <typename Visit>
bool visit_mappings(std::span<const std::byte> pages, Visit&& visit) {
  const auto begin = reinterpret_cast<std::uint64_t>(pages.data());
  const std::uint64_t end = begin + pages.size();
  char buffer[16384];  // at least as much as the kernel returns at once
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> maps(std::fopen("/proc/self/maps", "re"), &std::fclose);
  if (!maps) return false;
  std::setvbuf(maps.get(), buffer, _IOFBF, sizeof buffer);
  char line[512];
  bool is_at_start = true;
  while (std::fgets(line, sizeof line, maps.get()) != nullptr) {
    const bool starts = is_at_start;
    is_at_start = std::strchr(line, '\n') != nullptr;  // a long name continues in the next piece
    if (!starts) continue;
    const char* const dash = std::strchr(line, '-');
    if (dash == nullptr) return false;
    if (std::strtoull(dash + 1, nullptr, 16) <= begin) continue;  // most lines: the rest of them is not needed
    Mapping mapping;
    int name_at = 0;
    if (std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &mapping.begin, &mapping.end,
                    mapping.rights, &mapping.offset, &mapping.device_major, &mapping.device_minor, &mapping.inode,
                    &name_at) < 7) {
      return false;
    }
    if (mapping.begin >= end) return true;
    mapping.name = std::string_view(line + name_at, std::strcspn(line + name_at, "\n"));
    if (!visit(mapping)) return true;
  }
  return true;
}

/// Returns whether all of the pages are mapped, and all their mappings accepted.
template <typename Accept>
bool all_mappings(std::span<const std::byte> pages, Accept&& accept) {
  auto covered = reinterpret_cast<std::uint64_t>(pages.data());
  const std::uint64_t end = covered + pages.size();
  visit_mappings(pages, [&](const Mapping& mapping) {
    if (mapping.begin > covered || !accept(mapping)) return false;
    covered = mapping.end;
    return true;
  });
  return covered >= end;
}

}  // namespace

unsigned thread_count() noexcept {
  struct stat facts{};
  if (::stat("/proc/self/task", &facts) != 0 || facts.st_nlink < 3) return 0;
  return static_cast<unsigned>(facts.st_nlink) - 2;  // one directory per thread
}

bool is_mapped(std::span<const std::byte> memory, bool is_written) noexcept {
  if (memory.size() > UINTPTR_MAX - reinterpret_cast<std::uintptr_t>(memory.data())) return false;
  return all_mappings(memory, [&](const Mapping& mapping) {
    return mapping.rights[0] == 'r' && (!is_written || mapping.rights[1] == 'w');
  });
}

bool is_private_memory(std::span<const std::byte> pages) noexcept {
  return all_mappings(pages, [](const Mapping& mapping) {
    return std::string_view(mapping.rights) == "rw-p" &&
           (mapping.name.empty() || mapping.name == "[heap]" || mapping.name.starts_with("[anon") ||
            mapping.name.starts_with("/memfd:fairlead"));
  });
}

bool is_mapped_from(std::span<const std::byte> pages, int file, std::uint64_t offset) noexcept {
  struct stat facts{};
  if (::fstat(file, &facts) != 0) return false;
  const auto begin = reinterpret_cast<std::uint64_t>(pages.data());
  return all_mappings(pages, [&](const Mapping& mapping) {
    return mapping.inode == facts.st_ino && mapping.device_major == major(facts.st_dev) &&
           mapping.device_minor == minor(facts.st_dev) && mapping.rights[3] == 's' &&
           mapping.offset - offset == mapping.begin - begin;
  });
}

bool has_any_of(std::span<const std::byte> pages, int file) noexcept {
  struct stat facts{};
  if (::fstat(file, &facts) != 0) return true;
  bool has_any = false;
  const bool is_known = visit_mappings(pages, [&](const Mapping& mapping) {
    has_any = mapping.inode == facts.st_ino && mapping.device_major == major(facts.st_dev) &&
              mapping.device_minor == minor(facts.st_dev);
    return !has_any;
  });
  return has_any || !is_known;
}

}  // namespace fairlead::base
