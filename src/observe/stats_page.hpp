#pragma once
// The page in which an engine shows its state to other processes of its user (docs/top.md): anonymous memory, found
// through /proc, which ends with the process. Only the owner can write to it, and the owner never reads it.
//
// It is written only on request. A reader rings (a byte in a pipe), and the thread that drives the engine copies the
// figures. Without readers this costs nothing, and an idle engine keeps sleeping.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include <fairlead/error.hpp>

#include "base/file_descriptor.hpp"
#include "base/time.hpp"
#include "observe/engine_stats.hpp"
#include "observe/stats_layout.hpp"

namespace fairlead::observe {

/// Name of the memory in /proc.
inline constexpr char kStatsName[] = "fairlead-stats";
/// Bytes that a reader writes into the pipe.
inline constexpr char kAskFigures = 's', kAskFlights = 'f';

class StatsPage {
 public:
  /// Creates a page that only tells who this engine is.
  static Result<StatsPage> create(const base::SocketAddress& address, base::Instant now);
  StatsPage(StatsPage&& other) noexcept;
  StatsPage& operator=(StatsPage&&) = delete;
  ~StatsPage();

  /// Readable when a reader has rung.
  int bell() const noexcept { return bell_.get(); }
  int descriptor() const noexcept { return file_.get(); }

  enum class Wish : std::uint8_t { nothing, figures, flights };
  /// Returns what readers have asked for since the last call.
  Wish take_wish() noexcept;
  /// Writes the figures, and the flights if they were asked for.
  void publish(const EngineStats& stats, Wish wish, base::Instant now);
  /// Writes the engine's newest report for people.
  void publish_report(std::string_view report, base::Instant now) noexcept;

 private:
  class Writing;

  StatsPage(base::FileDescriptor file, base::FileDescriptor bell, std::byte* page)
      : file_(std::move(file)), bell_(std::move(bell)), page_(page) {}
  void publish_flights(std::span<const PeerFlight> flights);
  template <typename Facts, typename Make>
  void put(StatsPart part, const Facts& facts, std::size_t total, Make&& make);
  /// Allocates memory for so many records, within the part's limit. Returns how many have memory: all or none.
  std::uint32_t take_room(StatsPart part, std::size_t count) noexcept;
  void put_record(StatsPart part, std::size_t index, const void* record) noexcept;
  void put_header() noexcept;

  base::FileDescriptor file_, bell_;
  std::byte* page_;
  StatsHeader header_;                             // the original; the page has a copy
  std::array<std::uint32_t, kStatsParts> room_{};  // records of each part that have memory
};

}  // namespace fairlead::observe
