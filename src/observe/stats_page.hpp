#pragma once
// The page in which an engine shows itself to other processes of its user (docs/top.md): memory without a name, found
// through /proc, which ends with the process. Nobody but the owner can write to it, and the owner never reads it.
//
// Nothing is written for its own sake: a reader rings (a byte in a pipe), and whoever drives the engine then copies
// what there is. While nobody looks this costs nothing, and an idle engine sleeps on.

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

/// The name of the memory.
inline constexpr char kStatsName[] = "fairlead-stats";
/// What a reader writes into the pipe.
inline constexpr char kAskFigures = 's', kAskFlights = 'f';

class StatsPage {
 public:
  /// Says who this is, and nothing else yet.
  static Result<StatsPage> create(const base::SocketAddress& address, base::Instant now);
  StatsPage(StatsPage&& other) noexcept;
  StatsPage& operator=(StatsPage&&) = delete;
  ~StatsPage();

  /// Readable when somebody has rung.
  int bell() const noexcept { return bell_.get(); }
  int descriptor() const noexcept { return file_.get(); }

  enum class Wish : std::uint8_t { nothing, figures, flights };
  /// What was asked for since the last call.
  Wish take_wish() noexcept;
  /// The flights only if they were asked for.
  void publish(const EngineStats& stats, Wish wish, base::Instant now);
  /// The newest report of the engine for people.
  void publish_report(std::string_view report, base::Instant now) noexcept;

 private:
  class Writing;

  StatsPage(base::FileDescriptor file, base::FileDescriptor bell, std::byte* page)
      : file_(std::move(file)), bell_(std::move(bell)), page_(page) {}
  void publish_flights(std::span<const PeerFlight> flights);
  template <typename Facts, typename Make>
  void put(StatsPart part, const Facts& facts, std::size_t total, Make&& make);
  /// How many of so many records have memory: all or none, and no more than the page is made for.
  std::uint32_t take_room(StatsPart part, std::size_t count) noexcept;
  void put_record(StatsPart part, std::size_t index, const void* record) noexcept;
  void put_header() noexcept;

  base::FileDescriptor file_, bell_;
  std::byte* page_;
  StatsHeader header_;                             // ours; the page has a copy
  std::array<std::uint32_t, kStatsParts> room_{};  // records of each part that have memory
};

}  // namespace fairlead::observe
