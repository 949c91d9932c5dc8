#include "observe/stats_page.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/file_signals.hpp"

namespace fairlead::observe {
namespace {

// No new writable mapping is possible; the existing one stays.
constexpr int kStatsSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;

std::unexpected<Error> no_page(std::string_view what) {
  const int number = errno;
  return std::unexpected(
      Error{Status::system, number,
            fmt::format("`fairlead top` will not see this engine: cannot {}: {}", what, std::strerror(number))});
}

/// A pipe with both ends in one descriptor, so that the owner never sees an end of file.
base::FileDescriptor open_bell() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return {};
  const base::FileDescriptor read_end(ends[0]), write_end(ends[1]);
  return base::FileDescriptor(
      ::open(fmt::format("/proc/self/fd/{}", read_end.get()).c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
}

template <std::size_t kLetters>
void set_text(StatsText<kLetters>& text, std::string_view from) noexcept {
  text = {};
  std::ranges::copy(from.substr(0, kLetters), text.begin());
}

std::int64_t nanoseconds(base::Instant time) noexcept {
  return time.time_since_epoch().count();
}

StatsCounter record_of(const CounterFact& fact) noexcept {
  StatsCounter record{.value = fact.value};
  set_text(record.name, fact.name);
  return record;
}

StatsPeer record_of(const PeerFact& fact) {
  StatsPeer record{.round_trip = fact.round_trip.count(),
                   .silent_for = fact.silent_for.count(),
                   .bytes_in_flight = fact.bytes_in_flight,
                   .is_connected = fact.is_connected};
  set_text(record.address, fact.address.to_string());
  set_text(record.path, fact.path);
  set_text(record.path_reason, fact.path_reason);
  set_text(record.memory_reason, fact.memory_reason);
  return record;
}

StatsPort record_of(const PortFact& fact) noexcept {
  return {.number = fact.number,
          .operations = fact.operations,
          .dropped_no_buffer = fact.dropped_no_buffer,
          .takes_active = fact.takes_active};
}

StatsPair record_of(const PairFact& fact) {
  StatsPair record{
      .number = fact.number, .peer_number = fact.peer_number, .requests = fact.requests, .in_flight = fact.in_flight};
  set_text(record.type, fact.type);
  set_text(record.state, fact.state);
  set_text(record.peer, fact.peer_number == 0 ? std::string() : fact.peer.to_string());
  return record;
}

}  // namespace

/// The sequence is odd while it lives; its destructor writes the header.
class StatsPage::Writing {
 public:
  explicit Writing(StatsPage& page) : page_(page) {
    sequence().store(++page_.header_.sequence, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
  }
  ~Writing() {
    page_.put_header();
    sequence().store(++page_.header_.sequence, std::memory_order_release);
  }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;

 private:
  std::atomic_ref<std::uint32_t> sequence() const {
    return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(page_.page_ + offsetof(StatsHeader, sequence)));
  }
  StatsPage& page_;
};

Result<StatsPage> StatsPage::create(const base::SocketAddress& address, base::Instant now) {
  base::FileDescriptor bell = open_bell();
  struct stat facts{};
  if (!bell.is_open() || ::fstat(bell.get(), &facts) != 0) return no_page("make a pipe");
  base::FileDescriptor file(::memfd_create(kStatsName, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.is_open()) return no_page("make its memory");
  if (::fchmod(file.get(), 0600) != 0 || !base::resize_file(file.get(), kStatsPlaces.page_bytes) ||
      !base::change_room(file.get(), 0, 0, sizeof(StatsHeader)))
    return no_page("take its memory");
  void* const place = ::mmap(nullptr, kStatsPlaces.page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (place == MAP_FAILED) return no_page("map its memory");
  StatsPage page(std::move(file), std::move(bell), static_cast<std::byte*>(place));
  if (::fcntl(page.descriptor(), F_ADD_SEALS, kStatsSeals) != 0) return no_page("seal its memory");

  StatsHeader& header = page.header_;
  header.header_bytes = sizeof(StatsHeader);
  header.pid = static_cast<std::uint32_t>(::getpid());
  header.bell_inode = facts.st_ino;
  header.bell_descriptor = static_cast<std::uint32_t>(page.bell());
  header.page_bytes = kStatsPlaces.page_bytes;
  header.started_at = nanoseconds(now);
  header.parts = kStatsPlaces.parts;
  set_text(header.address, address.to_string());
  {
    const Writing writing(page);
  }
  return page;
}

StatsPage::StatsPage(StatsPage&& other) noexcept
    : file_(std::move(other.file_)),
      bell_(std::move(other.bell_)),
      page_(std::exchange(other.page_, nullptr)),
      header_(other.header_),
      room_(other.room_) {}

StatsPage::~StatsPage() {
  if (page_ != nullptr) ::munmap(page_, kStatsPlaces.page_bytes);
}

StatsPage::Wish StatsPage::take_wish() noexcept {
  constexpr int kReadsMost = 64;  // a process may fill the pipe all the time
  Wish wish = Wish::nothing;
  std::array<char, 1024> letters;
  for (int i = 0; i < kReadsMost; ++i) {
    const ssize_t count = ::read(bell_.get(), letters.data(), letters.size());
    if (count <= 0) break;
    for (const char letter : std::span(letters).first(static_cast<std::size_t>(count)))
      wish = std::max(wish, letter == kAskFlights ? Wish::flights : Wish::figures);
  }
  return wish;
}

void StatsPage::publish(const EngineStats& stats, Wish wish, base::Instant now) {
  header_.published_at = nanoseconds(now);
  ++header_.publications;
  set_text(header_.path, stats.facts.path);
  const Writing writing(*this);
  const auto make = [](const auto& fact) { return record_of(fact); };
  const EngineFacts& facts = stats.facts;
  put(StatsPart::counters, facts.counters, facts.counters.size(), make);
  put(StatsPart::peers, facts.peers, facts.peers_total, make);
  put(StatsPart::ports, stats.ports, stats.ports_total, make);
  put(StatsPart::pairs, stats.pairs, stats.pairs_total, make);
  if (wish != Wish::flights) return;
  header_.flights_at = nanoseconds(now);
  ++header_.flight_publications;
  publish_flights(stats.flights);
}

void StatsPage::publish_flights(std::span<const PeerFlight> flights) {
  std::uint32_t first = 0;
  const std::uint32_t room = take_room(StatsPart::events, flights.size() * FlightRecorder::kEvents);
  put(StatsPart::flights, flights, flights.size(), [&](const PeerFlight& flight) {
    const auto most = std::min<std::size_t>({flight.events.size(), FlightRecorder::kEvents, std::size_t{room} - first});
    StatsFlight record{.recorded = flight.recorded, .first = first, .count = static_cast<std::uint32_t>(most)};
    set_text(record.peer, flight.peer.to_string());
    for (std::size_t i = 0; i < most; ++i) put_record(StatsPart::events, first++, &flight.events[i]);
    return record;
  });
  StatsSection& events = header_.parts[static_cast<std::size_t>(StatsPart::events)];
  events.count = events.total = first;
}

void StatsPage::publish_report(std::string_view report, base::Instant now) noexcept {
  StatsSection& section = header_.parts[static_cast<std::size_t>(StatsPart::report)];
  header_.reported_at = nanoseconds(now);
  section.count = take_room(StatsPart::report, report.size());
  section.total = static_cast<std::uint32_t>(report.size());
  const Writing writing(*this);
  std::memcpy(page_ + section.offset, report.data(), section.count);
}

/// Writes the records of a part; make(fact) returns the record of a fact.
template <typename Facts, typename Make>
void StatsPage::put(StatsPart part, const Facts& facts, std::size_t total, Make&& make) {
  StatsSection& section = header_.parts[static_cast<std::size_t>(part)];
  const std::uint32_t room = take_room(part, facts.size());
  section.count = 0;
  section.total = static_cast<std::uint32_t>(total);
  while (section.count < room) {
    const auto record = make(facts[section.count]);
    put_record(part, section.count++, &record);
  }
}

// Without memory the kernel reports an error here; at the first touch it would end the process.
std::uint32_t StatsPage::take_room(StatsPart part, std::size_t count) noexcept {
  const auto index = static_cast<std::size_t>(part);
  const auto most = static_cast<std::uint32_t>(std::min<std::size_t>(count, kStatsPartRows[index].count_max));
  if (most <= room_[index]) return most;
  const StatsSection& place = kStatsPlaces.parts[index];
  if (!base::change_room(file_.get(), 0, place.offset, std::size_t{most} * place.stride)) return 0;
  room_[index] = most;
  return most;
}

void StatsPage::put_record(StatsPart part, std::size_t index, const void* record) noexcept {
  const StatsSection& section = kStatsPlaces.parts[static_cast<std::size_t>(part)];
  std::memcpy(page_ + section.offset + index * section.stride, record, section.stride);
}

void StatsPage::put_header() noexcept {
  constexpr std::size_t kBefore = offsetof(StatsHeader, sequence), kAfter = offsetof(StatsHeader, pid);
  const auto* const bytes = reinterpret_cast<const std::byte*>(&header_);
  std::memcpy(page_, bytes, kBefore);
  std::memcpy(page_ + kAfter, bytes + kAfter, sizeof header_ - kAfter);
}

}  // namespace fairlead::observe
