#pragma once
// Completes addresses as users type them.

#include <fairlead/error.hpp>

#include <string>
#include <string_view>

#include "base/socket_address.hpp"

namespace fairlead::tools {

/// Defaults for the parts that a user may omit.
struct AddressDefaults {
  std::string pid = "20480";
  std::string portal = "39";
  std::string tmid = "12";
};

/// Completes an address such as "10.0.0.5", "10.0.0.5@udp:20480", "[::1]@udp:20480:39:*", "::1" or "0@lo". Returns
/// `invalid` if it is malformed.
Result<std::string> complete_address(std::string_view text, const AddressDefaults& defaults);
/// As complete_address(), also for "server" or "server:20480". Asks the system's resolver for the name, which may take
/// seconds. Returns `not_available` if the name is unknown.
Result<std::string> look_up_address(std::string_view text, const AddressDefaults& defaults);

/// Returns the address in "10.0.0.5", "10.0.0.5:20479", "[::1]:20479", "::1" or "server:20479". Asks the system's
/// resolver for a name. Returns `invalid` if it is malformed, `not_available` if the name is unknown.
Result<base::SocketAddress> look_up_server(std::string_view text, std::uint16_t default_port);

/// Returns the engine's address in a complete `address`. Returns `invalid` if it has no UDP port, as 0@lo.
Result<base::SocketAddress> engine_address_in(std::string_view address);

/// Returns the nid from which this host reaches a complete `address`. Asks the kernel's routes, and sends nothing.
Result<std::string> nid_towards(std::string_view address);

}  // namespace fairlead::tools
