#include "tools/bulkping_address.hpp"

#include <fairlead/net/address.hpp>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

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
            fmt::format("no route to {}: {}: name the own address with --address", address, std::strerror(number))});
}

}  // namespace

Result<std::string> complete_address(std::string_view text, const AddressDefaults& defaults) {
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

Result<std::string> nid_towards(std::string_view address) {
  const std::string_view nid = address.substr(0, nid_length(address));
  if (nid.ends_with("@lo")) return std::string(nid);
  std::string_view host = nid.substr(0, nid.find('@'));
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);

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
