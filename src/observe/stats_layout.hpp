#pragma once
// The layout of a statistics page, and the one table that names its fields. The writer, the reader, `fairlead top
// --json` and docs/top.md are made from it. A change of a record has to change kStatsVersion, too.
//
//     header | counters | peers | ports | pairs | report | flights | flight events
//
// `sequence` is odd while the owner writes; a reader compares it before and after (a seqlock). Times are those of the
// monotonic clock in nanoseconds; 0: never. Texts end with a zero, or with their field.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "observe/engine_stats.hpp"
#include "observe/flight_recorder.hpp"

namespace fairlead::observe {

inline constexpr std::uint32_t kStatsVersion = 1;
inline constexpr std::array<char, 8> kStatsMagic{'F', 'L', 'S', 'T', 'A', 'T', 'S', '\n'};

struct StatsSection {
  std::uint32_t offset = 0, stride = 0;
  std::uint32_t count = 0;
  std::uint32_t total = 0;  // number that exists; more than `count` if the page lacks room
};

/// Each part is an array of records; events have the flight recorder's own format.
enum class StatsPart : std::uint8_t { counters, peers, ports, pairs, report, flights, events };
inline constexpr std::size_t kStatsParts = 7;

template <std::size_t kLetters>
using StatsText = std::array<char, kLetters>;

struct StatsHeader {
  std::array<char, 8> magic = kStatsMagic;
  std::uint32_t version = kStatsVersion;
  std::uint32_t header_bytes = 0;
  std::uint32_t sequence = 0;
  std::uint32_t pid = 0;
  std::uint64_t bell_inode = 0;
  std::uint32_t bell_descriptor = 0;
  std::uint32_t page_bytes = 0;
  std::int64_t started_at = 0;
  std::int64_t published_at = 0;
  std::int64_t reported_at = 0;
  std::int64_t flights_at = 0;
  std::uint64_t publications = 0;
  std::uint64_t flight_publications = 0;
  StatsText<64> address{};
  StatsText<16> path{};
  std::array<StatsSection, kStatsParts> parts{};
};

struct StatsCounter {
  StatsText<56> name{};
  std::uint64_t value = 0;
};

struct StatsPeer {
  StatsText<64> address{};
  StatsText<8> path{};
  StatsText<120> path_reason{};
  StatsText<120> memory_reason{};
  std::int64_t round_trip = 0;
  std::int64_t silent_for = 0;
  std::uint64_t bytes_in_flight = 0;
  std::uint64_t is_connected = 0;
};

struct StatsPort {
  std::uint32_t number = 0;
  std::uint32_t operations = 0;
  std::uint64_t dropped_no_buffer = 0;
  std::uint64_t takes_active = 0;
};

struct StatsPair {
  std::uint32_t number = 0;
  std::uint32_t peer_number = 0;
  StatsText<8> type{};
  StatsText<8> state{};
  StatsText<64> peer{};
  std::uint32_t requests = 0;
  std::uint32_t in_flight = 0;
};

struct StatsFlight {
  StatsText<64> peer{};
  std::uint64_t recorded = 0;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

enum class StatsKind : std::uint8_t { number, flag, text, time, duration };

struct StatsField {
  std::string_view name;
  std::size_t offset = 0, bytes = 0;
  StatsKind kind = StatsKind::number;
  std::string_view sentence;
};

// The header's fields for people; those before them only describe the layout.
inline constexpr std::array<StatsField, 8> kStatsHeaderFields{{
    {"pid", offsetof(StatsHeader, pid), sizeof(StatsHeader::pid), StatsKind::number,
     "the process, as it knows itself in its PID namespace"},
    {"started_at", offsetof(StatsHeader, started_at), sizeof(StatsHeader::started_at), StatsKind::time,
     "when the engine started"},
    {"published_at", offsetof(StatsHeader, published_at), sizeof(StatsHeader::published_at), StatsKind::time,
     "when the figures were copied"},
    {"reported_at", offsetof(StatsHeader, reported_at), sizeof(StatsHeader::reported_at), StatsKind::time,
     "when the last report was made"},
    {"flights_at", offsetof(StatsHeader, flights_at), sizeof(StatsHeader::flights_at), StatsKind::time,
     "when the flight recorder was copied"},
    {"publications", offsetof(StatsHeader, publications), sizeof(StatsHeader::publications), StatsKind::number,
     "how often somebody asked for the figures"},
    {"address", offsetof(StatsHeader, address), sizeof(StatsHeader::address), StatsKind::text,
     "the engine's address: IP and UDP port"},
    {"path", offsetof(StatsHeader, path), sizeof(StatsHeader::path), StatsKind::text,
     "what carries datagrams to other hosts"},
}};

inline constexpr std::array<StatsField, 2> kStatsCounterFields{{
    {"name", offsetof(StatsCounter, name), sizeof(StatsCounter::name), StatsKind::text,
     "the counter, as `fairlead explain` knows it"},
    {"value", offsetof(StatsCounter, value), sizeof(StatsCounter::value), StatsKind::number,
     "since the engine started"},
}};

inline constexpr std::array<StatsField, 8> kStatsPeerFields{{
    {"address", offsetof(StatsPeer, address), sizeof(StatsPeer::address), StatsKind::text, "the peer's address"},
    {"path", offsetof(StatsPeer, path), sizeof(StatsPeer::path), StatsKind::text, "how it is reached: udp or shm"},
    {"path_reason", offsetof(StatsPeer, path_reason), sizeof(StatsPeer::path_reason), StatsKind::text,
     "why not through shared memory, if a setting or an error prevents it"},
    {"memory_reason", offsetof(StatsPeer, memory_reason), sizeof(StatsPeer::memory_reason), StatsKind::text,
     "why its memory outside the shared one is not reached"},
    {"round_trip", offsetof(StatsPeer, round_trip), sizeof(StatsPeer::round_trip), StatsKind::duration,
     "smoothed round-trip time, over UDP"},
    {"silent_for", offsetof(StatsPeer, silent_for), sizeof(StatsPeer::silent_for), StatsKind::duration,
     "time since it was last heard, over UDP"},
    {"bytes_in_flight", offsetof(StatsPeer, bytes_in_flight), sizeof(StatsPeer::bytes_in_flight), StatsKind::number,
     "bytes sent to it and not acknowledged, over UDP"},
    {"is_connected", offsetof(StatsPeer, is_connected), sizeof(StatsPeer::is_connected), StatsKind::flag,
     "whether a session or a connection is open"},
}};

inline constexpr std::array<StatsField, 4> kStatsPortFields{{
    {"number", offsetof(StatsPort, number), sizeof(StatsPort::number), StatsKind::number, "the port"},
    {"operations", offsetof(StatsPort, operations), sizeof(StatsPort::operations), StatsKind::number,
     "operations that have not completed"},
    {"dropped_no_buffer", offsetof(StatsPort, dropped_no_buffer), sizeof(StatsPort::dropped_no_buffer),
     StatsKind::number, "messages for which no posted buffer had room"},
    {"takes_active", offsetof(StatsPort, takes_active), sizeof(StatsPort::takes_active), StatsKind::flag,
     "whether it takes active messages"},
}};

inline constexpr std::array<StatsField, 7> kStatsPairFields{{
    {"number", offsetof(StatsPair, number), sizeof(StatsPair::number), StatsKind::number, "the queue pair's number"},
    {"peer_number", offsetof(StatsPair, peer_number), sizeof(StatsPair::peer_number), StatsKind::number,
     "the number of the other end, 0 if it is not connected"},
    {"type", offsetof(StatsPair, type), sizeof(StatsPair::type), StatsKind::text, "RC, UC or UD"},
    {"state", offsetof(StatsPair, state), sizeof(StatsPair::state), StatsKind::text,
     "RESET, INIT, RTR, RTS, SQD, SQE or ERR"},
    {"peer", offsetof(StatsPair, peer), sizeof(StatsPair::peer), StatsKind::text, "the address of the other end"},
    {"requests", offsetof(StatsPair, requests), sizeof(StatsPair::requests), StatsKind::number,
     "send requests that have not completed"},
    {"in_flight", offsetof(StatsPair, in_flight), sizeof(StatsPair::in_flight), StatsKind::number,
     "of those, requests that were sent"},
}};

/// Returns whether the fields cover a record from its first to its last byte, without a gap.
consteval bool are_complete(std::span<const StatsField> fields, std::size_t record_bytes) {
  std::size_t end = 0;
  for (const StatsField& field : fields) {
    if (field.offset != end || field.name.empty() || field.sentence.empty()) return false;
    end += field.bytes;
  }
  return end == record_bytes;
}
static_assert(are_complete(kStatsCounterFields, sizeof(StatsCounter)));
static_assert(are_complete(kStatsPeerFields, sizeof(StatsPeer)));
static_assert(are_complete(kStatsPortFields, sizeof(StatsPort)));
static_assert(are_complete(kStatsPairFields, sizeof(StatsPair)));

struct StatsPartRow {
  std::string_view name;
  std::uint32_t stride = 0;
  std::uint32_t count_max = 0;
  std::span<const StatsField> fields{};  // none: a text, or records of the flight recorder
};
// In the order of the enumerators of StatsPart.
inline constexpr std::array<StatsPartRow, kStatsParts> kStatsPartRows{{
    {"counters", sizeof(StatsCounter), 512, kStatsCounterFields},
    {"peers", sizeof(StatsPeer), EngineFacts::kPeersInFacts, kStatsPeerFields},
    {"ports", sizeof(StatsPort), EngineStats::kMost, kStatsPortFields},
    {"pairs", sizeof(StatsPair), EngineStats::kMost, kStatsPairFields},
    {"report", 1, 8192},
    {"flights", sizeof(StatsFlight), FlightRecorder::kRingsMax},
    {"events", sizeof(FlightEvent), FlightRecorder::kRingsMax* FlightRecorder::kEvents},
}};

/// Offsets of the parts, and the end of the last one.
struct StatsPlaces {
  std::array<StatsSection, kStatsParts> parts{};
  std::uint32_t page_bytes = 0;
};
consteval StatsPlaces stats_places() {
  constexpr std::uint32_t kPage = 4096;
  StatsPlaces places;
  std::uint32_t at = kPage;
  for (std::size_t i = 0; i < kStatsParts; ++i) {
    places.parts[i] = {.offset = at, .stride = kStatsPartRows[i].stride};
    at += (kStatsPartRows[i].stride * kStatsPartRows[i].count_max + kPage - 1) / kPage * kPage;
  }
  places.page_bytes = at;
  return places;
}
inline constexpr StatsPlaces kStatsPlaces = stats_places();
static_assert(sizeof(StatsHeader) <= 4096);

}  // namespace fairlead::observe
