#pragma once
// Addresses as people type them: what they leave out is filled in.

#include <fairlead/error.hpp>

#include <string>
#include <string_view>

namespace fairlead::tools {

/// The parts that a text may leave out.
struct AddressDefaults {
  std::string pid = "20480";
  std::string portal = "39";
  std::string tmid = "12";
};

/// "10.0.0.5", "10.0.0.5@udp:20480", "[::1]@udp:20480:39:*", "0@lo" to the full form; `invalid` if that is no address.
Result<std::string> complete_address(std::string_view text, const AddressDefaults& defaults);

/// The nid of this host from which it would reach `address` (a full one): asks the kernel's routes, sends nothing.
Result<std::string> nid_towards(std::string_view address);

}  // namespace fairlead::tools
