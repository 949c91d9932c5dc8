// Resolves host names in addresses.

#include <fmt/format.h>

#include <fairlead/net/address.hpp>

#include "base/host_name.hpp"
#include "base/shown.hpp"
#include "net/net_address.hpp"

namespace fairlead::net {

Result<std::string> resolve(std::string_view host, std::string_view rest) {
  const std::size_t colon = host.rfind(':');
  const bool has_pid = colon != host.npos && host.find(']', colon) == host.npos;
  std::string_view name = host.substr(0, colon);
  const bool has_brackets = name.starts_with('[') && name.ends_with(']');
  if (!has_pid || (!has_brackets && name.find(':') != name.npos)) {
    return std::unexpected(Error{
        Status::invalid, 0,
        fmt::format("\"{}\" is not HOST:PID: as in server:20480, 10.0.0.5:20480 or [::1]:20480", base::shown(host))});
  }
  if (has_brackets) name = name.substr(1, name.size() - 2);
  const auto addresses = base::addresses_of_host(std::string(name));
  if (!addresses) return std::unexpected(addresses.error());
  std::string address = fmt::format("{}:{}:{}", nid_text(addresses->front()), host.substr(colon + 1), rest);
  if (const auto parsed = parse_address(address); !parsed) return std::unexpected(parsed.error());
  return address;
}

}  // namespace fairlead::net
