#pragma once
// Who is attached to a host engine, as it tells whoever may attach himself.

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
  std::int32_t process = 0;      // 0: in a PID namespace that the host engine does not see
  base::SocketAddress engine{};  // its address
  std::uint32_t ports = 0;
  std::uint64_t operations = 0;  // pending
  std::uint64_t seconds = 0;     // since it attached
  std::uint32_t pairs = 0;       // queue pairs
  // Its quota.
  std::uint32_t ports_max = 0, pairs_max = 0, operations_max = 0;
  std::uint64_t bytes_per_second = 0;  // 0: no bound
};

/// As it is sent; what finds no room is left out.
std::string encode_listing(const std::vector<AttachedFact>& facts);
/// Asks the host engine that listens at `file`. refused: nobody listens there.
Result<std::vector<AttachedFact>> list_attached(const std::string& file);

/// Counters of an engine, as they travel; what does not fit is left out.
std::string encode_counters(const std::vector<observe::CounterFact>& counters);
std::vector<observe::CounterFact> decode_counters(std::string_view text);

}  // namespace fairlead::host
