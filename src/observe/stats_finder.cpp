#include "observe/stats_finder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <fstream>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/file_signals.hpp"
#include "observe/stats_page.hpp"

namespace fairlead::observe {
namespace {

constexpr std::size_t kEntriesMost = 1U << 20;  // of a folder in /proc
constexpr std::size_t kPagesMost = 64;          // of one process, which must not exhaust our memory
constexpr auto kAnswerPause = std::chrono::microseconds(200);
constexpr auto kReadPatience = std::chrono::milliseconds(100);  // for all pages together
constexpr base::Instant kOnce{};

/// Calls visit(number) for each entry of a folder whose name is a number.
template <typename Visit>
void for_each_number(const std::string& folder, Visit&& visit) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), &::closedir);
  if (!entries) return;
  for (std::size_t i = 0; i < kEntriesMost; ++i) {
    const dirent* const entry = ::readdir(entries.get());
    if (entry == nullptr) return;
    const std::string_view name = entry->d_name;
    int number = 0;
    const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (code == std::errc() && end == name.data() + name.size()) visit(number);
  }
}

std::string file_of(pid_t pid, int descriptor) {
  return fmt::format("/proc/{}/fd/{}", pid, descriptor);
}

bool is_named_so(const std::string& file) {
  static const std::string kLink = fmt::format("/memfd:{} (deleted)", kStatsName);
  std::array<char, 64> target{};
  const ssize_t length = ::readlink(file.c_str(), target.data(), target.size());
  return length >= 0 && std::string_view(target.data(), static_cast<std::size_t>(length)) == kLink;
}

/// Opens the file that was checked. At its path another process may have put something else, which could block.
base::FileDescriptor reopen(const base::FileDescriptor& place, int flags) {
  return base::FileDescriptor(
      ::open(fmt::format("/proc/self/fd/{}", place.get()).c_str(), flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

base::FileDescriptor open_page(const std::string& file, struct stat& facts) {
  const base::FileDescriptor place(::open(file.c_str(), O_PATH | O_CLOEXEC));
  struct statfs system{};
  if (!place.is_open() || ::fstatfs(place.get(), &system) != 0 || system.f_type != TMPFS_MAGIC ||
      ::fstat(place.get(), &facts) != 0 || !S_ISREG(facts.st_mode))
    return {};
  return reopen(place, O_RDONLY);
}

/// Returns the process's number in its own PID namespace.
std::uint32_t own_number(pid_t pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  constexpr std::string_view kName = "NSpid:";
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(kName)) continue;
    const std::size_t last = line.find_last_of(" \t");
    std::uint32_t number = 0;
    std::from_chars(line.data() + last + 1, line.data() + line.size(), number);
    return number;
  }
  return static_cast<std::uint32_t>(pid);
}

std::string program_of(pid_t pid) {
  std::string name;
  std::getline(std::ifstream(fmt::format("/proc/{}/comm", pid)), name);
  return name;
}

/// A page that cannot be read may have another layout: it is kept, and its reader gets the error.
bool is_of(const base::FileDescriptor& page, pid_t pid) {
  const auto told = read_stats_pid(page.get());
  return !told || *told == own_number(pid);
}

void find_in(pid_t pid, std::vector<FoundStats>& found) {
  const std::size_t most = found.size() + kPagesMost;
  for_each_number(fmt::format("/proc/{}/fd", pid), [&](int descriptor) {
    const std::string file = file_of(pid, descriptor);
    if (found.size() == most || !is_named_so(file)) return;
    struct stat facts{};
    const base::FileDescriptor page = open_page(file, facts);
    if (page.is_open() && is_of(page, pid)) found.emplace_back(pid, program_of(pid), descriptor, facts.st_ino);
  });
}

}  // namespace

base::FileDescriptor FoundStats::open() const {
  struct stat facts{};
  base::FileDescriptor page = open_page(file_of(pid_, descriptor_), facts);
  return facts.st_ino == inode_ ? std::move(page) : base::FileDescriptor();
}

// The process itself provides the descriptor number. Whatever it names, only a pipe of the process's own user is
// written to.
bool FoundStats::ring(bool wants_flights, base::Instant until) {
  const base::FileDescriptor file = open();
  const auto header = read_stats_header(file.get(), until);
  struct stat page{}, bell{};
  if (!header || ::fstat(file.get(), &page) != 0) return false;
  wants_flights_ = wants_flights;
  publications_seen_ = header->publications;
  flights_seen_ = header->flight_publications;
  const base::FileDescriptor place(
      ::open(file_of(pid_, static_cast<int>(header->bell_descriptor)).c_str(), O_PATH | O_CLOEXEC));
  if (!place.is_open() || ::fstat(place.get(), &bell) != 0 || !S_ISFIFO(bell.st_mode) ||
      bell.st_ino != header->bell_inode || bell.st_uid != page.st_uid)
    return false;
  const base::FileDescriptor pipe = reopen(place, O_WRONLY);
  const char letter = wants_flights ? kAskFlights : kAskFigures;
  return pipe.is_open() && base::write_now(pipe.get(), {&letter, 1}) == 1;
}

bool FoundStats::has_answered() const {
  const auto header = read_stats_header(open().get(), kOnce);
  if (!header) return false;
  return wants_flights_ ? header->flight_publications != flights_seen_ : header->publications != publications_seen_;
}

std::vector<FoundStats> find_stats(std::optional<pid_t> only) {
  std::vector<FoundStats> found;
  if (only) {
    find_in(*only, found);
  } else {
    for_each_number("/proc", [&](int pid) { find_in(pid, found); });
    std::ranges::sort(found, {}, &FoundStats::pid);
  }
  return found;
}

std::vector<StatsAnswer> ask_stats(std::span<FoundStats> found, bool wants_flights, base::Duration patience) {
  const base::Instant end = base::MonotonicClock::now() + patience, read_until = end + kReadPatience;
  std::vector<bool> is_asked;
  for (FoundStats& one : found) is_asked.push_back(one.ring(wants_flights, end));
  std::vector<StatsAnswer> answers;
  for (std::size_t i = 0; i < found.size(); ++i) {
    bool is_fresh = is_asked[i] && found[i].has_answered();
    while (is_asked[i] && !is_fresh && base::MonotonicClock::now() < end) {
      std::this_thread::sleep_for(kAnswerPause);
      is_fresh = found[i].has_answered();
    }
    answers.push_back({.of = &found[i], .is_fresh = is_fresh, .view = found[i].read(read_until)});
  }
  return answers;
}

}  // namespace fairlead::observe
