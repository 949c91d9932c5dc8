#pragma once
// The list of attached applications. The host engine gives it to any process that may attach: of all users to its own
// user and to root, to others only those of the same user.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fairlead/error.hpp>

#include "base/socket_address.hpp"
#include "observe/facts.hpp"

namespace fairlead::host {

struct AttachedFact {
  std::uint32_t user = 0;
  std::int32_t process = 0;      // 0: in a PID namespace that the host engine cannot see
  base::SocketAddress engine{};  // its address
  std::uint32_t ports = 0;
  std::uint64_t operations = 0;  // pending
  std::uint64_t seconds = 0;     // since it attached
  std::uint32_t pairs = 0;       // queue pairs
  // Its quota:
  std::uint32_t ports_max = 0, pairs_max = 0, operations_max = 0;
  std::uint32_t events = 0, events_max = 0;                // for which it has memory, and its quota
  std::uint64_t registered_bytes = 0, registered_max = 0;  // the same, of memory regions; 0: no limit
  std::uint64_t bytes_per_second = 0;                      // 0: no limit
};

/// The size of a row in an answer.
inline constexpr std::uint32_t kListedRowBytes = 104;
/// The most rows that an answer has room for.
inline constexpr std::uint32_t kListedMost = 500;
/// Encodes a part of the list for an answer: at most kListedMost rows.
std::string encode_listing(const std::vector<AttachedFact>& facts);
/// Asks the host engine at `file`, for `rows_max` rows at a time. The result is sorted by process. Returns `refused` if
/// nobody listens there.
Result<std::vector<AttachedFact>> list_attached(const std::string& file, std::uint32_t rows_max = kListedMost);

/// Encodes an engine's counters for an answer; omits what does not fit.
std::string encode_counters(const std::vector<observe::CounterFact>& counters);
std::vector<observe::CounterFact> decode_counters(std::string_view text);

}  // namespace fairlead::host
