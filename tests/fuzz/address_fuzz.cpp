// Parses an IP address. Any text gives an address that prints and parses as itself, or an error of one printable line.

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/ensure.hpp"
#include "base/socket_address.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto address = fairlead::base::SocketAddress::from_ip(text, 20480);
  if (!address) {
    const std::string_view message = address.error().message;
    ENSURE(!message.empty() && std::ranges::all_of(message, [](char letter) { return letter >= ' ' && letter <= '~'; }),
           "an error for an address of {} bytes that is not a printable line", size);
    return 0;
  }
  const auto again = fairlead::base::SocketAddress::from_ip(address->ip_text(), 20480);
  ENSURE(again && *again == *address, "{} is not what it was parsed from", address->ip_text());
  return 0;
}
