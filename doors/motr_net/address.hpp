#pragma once
// Converts Motr's addresses over LNet, 10.0.0.5@tcp:12345:34:1, to Fairlead's, 10.0.0.5@udp:12345:34:1, and back.

#include <optional>
#include <string>
#include <string_view>

namespace fairlead::motr {

/// Returns the network in an address: "tcp", "tcp1", "o2ib", "udp", or "lo" of 0@lo. Empty if it is not supported.
std::string network_of(std::string_view address);
/// Replaces the network by Fairlead's. Returns nullopt if the address is malformed.
std::optional<std::string> to_fairlead(std::string_view address);
/// Replaces the network by the one on which a transfer machine was started.
std::string to_motr(std::string_view address, std::string_view network);

}  // namespace fairlead::motr
