#include "observe/stats_view.hpp"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <span>
#include <thread>

#include <fmt/format.h>

namespace fairlead::observe {
namespace {

static_assert(std::endian::native == std::endian::little);
constexpr auto kReadPause = std::chrono::microseconds(50);

bool read_all(int file, std::span<std::byte> to, std::size_t offset) {
  while (!to.empty()) {
    const ssize_t count = ::pread(file, to.data(), to.size(), static_cast<off_t>(offset));
    if (count <= 0) return false;
    to = to.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::size_t>(count);
  }
  return true;
}

std::unexpected<Error> no_stats(Status status, std::string message) {
  return std::unexpected(Error{status, 0, std::move(message)});
}

std::unexpected<Error> too_short() {
  return no_stats(Status::invalid, "not a page of statistics: it is too short");
}

std::unexpected<Error> is_being_written() {
  return no_stats(Status::again, "the program is writing its statistics, or stopped in the middle: try again");
}

/// Checks what the owner writes once and never changes.
Result<> judge_layout(const StatsHeader& header) {
  if (header.magic != kStatsMagic) return no_stats(Status::invalid, "not a page of statistics");
  if (header.version == kStatsVersion) return {};
  return no_stats(Status::not_supported,
                  fmt::format("statistics of layout {}, and this command reads layout {}: use the `fairlead` of the "
                              "release that the program was built with",
                              header.version, kStatsVersion));
}

Result<> judge_parts(const StatsHeader& header) {
  bool is_right = header.header_bytes == sizeof(StatsHeader) && header.page_bytes == kStatsPlaces.page_bytes;
  for (std::size_t i = 0; i < kStatsParts; ++i) {
    const StatsSection &told = header.parts[i], &place = kStatsPlaces.parts[i];
    is_right &= told.offset == place.offset && told.stride == place.stride &&
                told.count <= kStatsPartRows[i].count_max && told.count <= told.total;
  }
  return is_right ? Result<>{} : no_stats(Status::invalid, "a page of statistics that contradicts itself");
}

bool read_bytes_of(int file, StatsHeader& header) {
  return read_all(file, std::as_writable_bytes(std::span(&header, 1)), 0);
}

/// Returns whether the owner has written nothing since this header was read, and was not about to.
bool is_unchanged(int file, const StatsHeader& header) {
  StatsHeader now;
  return header.sequence % 2 == 0 && read_bytes_of(file, now) && now.sequence == header.sequence;
}

/// Pauses before another attempt; returns false if it is too late for one.
bool rest(base::Instant until) {
  if (base::MonotonicClock::now() >= until) return false;
  std::this_thread::sleep_for(kReadPause);
  return true;
}

template <typename Records>
bool read_part(int file, const StatsHeader& header, StatsPart part, Records& records) {
  const StatsSection& section = header.parts[static_cast<std::size_t>(part)];
  records.resize(section.count);
  return read_all(file, std::as_writable_bytes(std::span(records)), section.offset);
}

bool are_within(const std::vector<StatsFlight>& flights, std::size_t events) {
  return std::ranges::all_of(flights, [&](const StatsFlight& flight) {
    return flight.first <= events && flight.count <= events - flight.first;
  });
}

}  // namespace

StatsValue value_of(const StatsField& field, const std::byte* record) {
  const std::byte* const at = record + field.offset;
  if (field.kind == StatsKind::text)
    return {.text = text_before_zero({reinterpret_cast<const char*>(at), field.bytes})};
  StatsValue value;
  // the field may be narrower: its low bytes come first
  std::memcpy(&value.number, at, std::min(field.bytes, sizeof value.number));
  return value;
}

std::uint64_t StatsView::counter(std::string_view name) const {
  const auto found = std::ranges::find_if(counters, [&](const auto& one) { return text_of(one.name) == name; });
  return found == counters.end() ? 0 : found->value;
}

Result<std::uint32_t> read_stats_pid(int file) {
  StatsHeader header;
  if (!read_bytes_of(file, header)) return too_short();
  if (auto good = judge_layout(header); !good) return std::unexpected(std::move(good.error()));
  return header.pid;
}

Result<StatsHeader> read_stats_header(int file, base::Instant until) {
  StatsHeader header;
  do {
    if (!read_bytes_of(file, header)) return too_short();
    if (auto good = judge_layout(header); !good) return std::unexpected(std::move(good.error()));
    if (!is_unchanged(file, header)) continue;  // the header may be partly new
    if (auto good = judge_parts(header); !good) return std::unexpected(std::move(good.error()));
    return header;
  } while (rest(until));
  return is_being_written();
}

Result<StatsView> read_stats(int file, base::Instant until) {
  do {
    auto header = read_stats_header(file, until);
    if (!header) return std::unexpected(std::move(header.error()));
    StatsView view;
    view.header = *header;
    const bool is_there = read_part(file, *header, StatsPart::counters, view.counters) &&
                          read_part(file, *header, StatsPart::peers, view.peers) &&
                          read_part(file, *header, StatsPart::ports, view.ports) &&
                          read_part(file, *header, StatsPart::pairs, view.pairs) &&
                          read_part(file, *header, StatsPart::report, view.report) &&
                          read_part(file, *header, StatsPart::flights, view.flights) &&
                          read_part(file, *header, StatsPart::events, view.events);
    if (!is_there) return no_stats(Status::invalid, "a page of statistics that is cut short");
    if (!is_unchanged(file, *header)) continue;
    if (are_within(view.flights, view.events.size())) return view;
    return no_stats(Status::invalid, "a page of statistics whose flights contradict each other");
  } while (rest(until));
  return is_being_written();
}

}  // namespace fairlead::observe
