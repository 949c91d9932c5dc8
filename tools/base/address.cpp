#include "tools/base/address.hpp"

#include <fairlead/net/address.hpp>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/host_name.hpp"
#include "base/quantity.hpp"
#include "base/shown.hpp"

namespace fairlead::tools {
namespace {

/// Returns the length of the nid, which may contain colons inside brackets.
std::size_t nid_length(std::string_view text) {
  const std::size_t bracket = text.starts_with('[') ? text.find(']') : 0;
  return bracket == text.npos ? text.size() : std::min(text.find(':', bracket), text.size());
}

std::unexpected<Error> no_route(std::string_view address, int number) {
  return std::unexpected(
      Error{Status::not_available, number,
            fmt::format("no route to {}: {}: check the address, and `ip route`", address, std::strerror(number))});
}

bool is_ipv6(std::string_view text) {
  const std::string address(text.substr(0, text.find('%')));  // without a zone
  in6_addr number;
  return inet_pton(AF_INET6, address.c_str(), &number) == 1;
}

/// Puts an IPv6 address into brackets if it has none.
std::string in_brackets(std::string_view text) {
  const std::size_t at = std::min(text.find('@'), text.size());
  if (!is_ipv6(text.substr(0, at))) return std::string(text);
  return fmt::format("[{}]{}", text.substr(0, at), text.substr(at));
}

/// Returns the nid with the address of its host, if that is a name. localhost is 127.0.0.1, where servers start.
Result<std::string> without_name(std::string_view nid) {
  const std::size_t at = std::min(nid.find('@'), nid.size());
  const std::string_view host = nid.substr(0, at), network = nid.substr(at);
  const bool is_name = !host.starts_with('[') &&
                       std::ranges::any_of(host, [](unsigned char letter) { return std::isalpha(letter) != 0; });
  if (!is_name || (!network.empty() && network != "@udp")) return std::string(nid);
  const auto addresses = base::addresses_of_host(std::string(host));
  if (!addresses) return std::unexpected(addresses.error());
  auto chosen = addresses->begin();
  if (chosen->is_loopback()) chosen = std::ranges::find_if(*addresses, &base::SocketAddress::is_v4);
  if (chosen == addresses->end()) chosen = addresses->begin();
  return fmt::format("{}{}", chosen->is_v4() ? chosen->ip_text() : fmt::format("[{}]", chosen->ip_text()), network);
}

/// Returns the host of a nid, without brackets.
std::string_view host_in(std::string_view nid) {
  std::string_view host = nid.substr(0, nid.find('@'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return host;
}

}  // namespace

Result<std::string> complete_address(std::string_view words, const AddressDefaults& defaults) {
  const std::string text_in_brackets = in_brackets(words);
  const std::string_view text = text_in_brackets;
  const std::size_t split = nid_length(text);
  std::string address(text.substr(0, split));
  if (address.find('@') == address.npos) address += "@udp";
  std::vector<std::string> parts{defaults.pid, defaults.portal, defaults.tmid};
  std::string_view rest = text.substr(split);
  for (std::size_t i = 0; !rest.empty(); ++i) {
    const std::size_t end = std::min(rest.find(':', 1), rest.size());
    if (i == parts.size()) parts.emplace_back();  // one part too many: the parser reports it
    parts[i] = rest.substr(1, end - 1);
    rest.remove_prefix(end);
  }
  for (const std::string& part : parts) address += ':' + part;
  const auto parsed = net::compare_nids(address, address);
  if (!parsed) return std::unexpected(parsed.error());
  return address;
}

Result<std::string> look_up_address(std::string_view text, const AddressDefaults& defaults) {
  const std::string address = in_brackets(text);
  const std::size_t split = nid_length(address);
  const auto nid = without_name(std::string_view(address).substr(0, split));
  if (!nid) return std::unexpected(nid.error());
  return complete_address(*nid + address.substr(split), defaults);
}

Result<base::SocketAddress> look_up_server(std::string_view text, std::uint16_t default_port) {
  const std::string address = in_brackets(text);
  const std::size_t split = nid_length(address);
  const std::string_view port_text = std::string_view(address).substr(split);
  std::optional<std::uint64_t> port = default_port;
  if (!port_text.empty()) port = base::parse_quantity(port_text.substr(1), "ports");
  if (!port || *port == 0 || *port > 65535 || address.find('@') != std::string::npos) {
    return std::unexpected(Error{Status::invalid, 0,
                                 fmt::format("'{}' is no server: write HOST or HOST:PORT, as 10.0.0.5 or [::1]:{}",
                                             base::shown(text), default_port)});
  }
  const auto nid = without_name(std::string_view(address).substr(0, split));
  if (!nid) return std::unexpected(nid.error());
  std::string_view host = *nid;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return base::SocketAddress::from_ip(host, static_cast<std::uint16_t>(*port));
}

Result<base::SocketAddress> engine_address_in(std::string_view address) {
  const std::size_t split = nid_length(address);
  const std::string_view host = host_in(address.substr(0, split)),
                         rest = address.substr(std::min(split + 1, address.size()));
  const auto port = base::parse_quantity(rest.substr(0, rest.find(':')), "ports");
  if (!port || *port == 0 || *port > 65535)
    return std::unexpected(Error{Status::invalid, 0, fmt::format("'{}' has no UDP port", base::shown(address))});
  return base::SocketAddress::from_ip(host, static_cast<std::uint16_t>(*port));
}

Result<std::string> nid_towards(std::string_view address) {
  const std::string_view nid = address.substr(0, nid_length(address));
  if (nid.ends_with("@lo")) return std::string(nid);
  const std::string_view host = host_in(nid);

  const addrinfo hints{.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                       .ai_family = AF_UNSPEC,
                       .ai_socktype = SOCK_DGRAM,
                       .ai_protocol = 0,
                       .ai_addrlen = 0,
                       .ai_addr = nullptr,
                       .ai_canonname = nullptr,
                       .ai_next = nullptr};
  addrinfo* found = nullptr;
  if (getaddrinfo(std::string(host).c_str(), "9", &hints, &found) != 0) return no_route(address, EINVAL);
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);

  const int probe = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  const bool has_route = probe >= 0 && connect(probe, found->ai_addr, found->ai_addrlen) == 0 &&
                         getsockname(probe, reinterpret_cast<sockaddr*>(&own), &length) == 0;
  const int number = errno;
  if (probe >= 0) close(probe);
  const std::string_view loopback = found->ai_family == AF_INET6 ? "::1" : "127.";
  if (!has_route && number == ENETUNREACH && host.starts_with(loopback))
    return std::unexpected(
        Error{Status::unreachable, number,
              fmt::format("cannot reach {}: is the interface lo down? `ip link set lo up`", address)});
  if (!has_route) return no_route(address, number);

  std::array<char, NI_MAXHOST> text{};
  getnameinfo(reinterpret_cast<sockaddr*>(&own), length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return own.ss_family == AF_INET6 ? fmt::format("[{}]@udp", text.data()) : fmt::format("{}@udp", text.data());
}

}  // namespace fairlead::tools
