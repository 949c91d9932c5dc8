// Parses a transfer machine's address. Any text gives an address that prints and parses as itself, or an error of one
// printable line.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/ensure.hpp"
#include "net/net_address.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fairlead;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto address = net::parse_address(text);
  if (!address) {
    const std::string_view message = address.error().message;
    ENSURE(!message.empty() && std::ranges::all_of(message, [](char letter) { return letter >= ' ' && letter <= '~'; }),
           "an error for an address of {} bytes that is not a printable line", size);
    return 0;
  }
  ENSURE(address->tmid <= net::kTmidMax, "tmid {}", address->tmid);
  if (address->has_star()) return 0;  // `*` prints as a number
  const std::string printed = net::address_text({address->engine, address->port()});
  const auto again = net::parse_address(printed);
  ENSURE(again && again->engine == address->engine && again->port() == address->port(), "{} is not what it was",
         printed);
  return 0;
}
