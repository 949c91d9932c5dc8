#pragma once
// Addresses of Motr over LNet, 10.0.0.5@tcp:12345:34:1, as those of Fairlead, 10.0.0.5@udp:12345:34:1, and back.

#include <optional>
#include <string>
#include <string_view>

namespace fairlead::motr {

/// "tcp", "tcp1", "o2ib", "udp", or "lo" of 0@lo: what an address says of its network. Empty if it says nothing that we
/// know.
std::string network_of(std::string_view address);
/// With the network that Fairlead has for it; nothing if the address is none.
std::optional<std::string> to_fairlead(std::string_view address);
/// With the network that a transfer machine was started on.
std::string to_motr(std::string_view address, std::string_view network);

}  // namespace fairlead::motr
