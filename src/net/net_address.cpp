#include "net/net_address.hpp"

#include <fairlead/net/address.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/local_addresses.hpp"
#include "base/shown.hpp"

namespace fairlead::net {
namespace {

constexpr std::string_view kForm =
    "10.0.0.5@udp:20480:34:1, [::1]@udp:20480:34:1 or 0@lo:20480:34:1 (nid:pid:portal:tmid)";
constexpr std::size_t kTextMax = 128;  // bytes; the longest IPv6 address with a zone needs less than 80

/// Returns whether the address begins with a name, for example "localhost:20480".
bool begins_with_name(std::string_view text) {
  const std::string_view host = text.substr(0, text.find_first_of("@:"));
  return std::ranges::any_of(host, [](unsigned char letter) { return std::isalpha(letter) && !std::isxdigit(letter); });
}

std::unexpected<Error> malformed(std::string_view text, std::string_view fault) {
  return std::unexpected(
      Error{Status::invalid, 0,
            fmt::format("malformed address \"{}\": {}; write it as {}{}", base::shown(text, kTextMax), fault, kForm,
                        begins_with_name(text) ? "; resolve() returns the address of a host's name" : "")});
}

struct Parts {
  std::string_view nid;
  std::array<std::string_view, 3> numbers;  // pid, portal, tmid
};

// Splits at the colons outside a bracketed IPv6 address.
Result<Parts> cut(std::string_view text) {
  if (text.size() > kTextMax) return malformed(text, fmt::format("longer than {} bytes", kTextMax));
  const std::size_t bracket = text.starts_with('[') ? text.find(']') : 0;
  if (bracket == std::string_view::npos) return malformed(text, "no ] after the IPv6 address");
  std::size_t colon = text.find(':', bracket);
  if (colon == std::string_view::npos) return malformed(text, "no colon");

  Parts parts{.nid = text.substr(0, colon), .numbers = {}};
  for (std::size_t i = 0; i < parts.numbers.size(); ++i) {
    if (colon == std::string_view::npos) return malformed(text, "too few parts");
    const std::size_t begin = colon + 1;
    colon = text.find(':', begin);
    parts.numbers[i] = text.substr(begin, colon - begin);
  }
  if (colon != std::string_view::npos) return malformed(text, "too many parts");
  return parts;
}

Result<base::SocketAddress> parse_nid(std::string_view text, std::string_view nid) {
  if (nid == "0@lo") return engine::lo(0);
  constexpr std::string_view kUdp = "@udp";
  if (!nid.ends_with(kUdp)) {
    return malformed(text, fmt::format("unknown network in nid \"{}\" (it is @udp, or 0@lo)", base::shown(nid)));
  }
  nid.remove_suffix(kUdp.size());
  const bool has_brackets = nid.starts_with('[') && nid.ends_with(']');
  if (has_brackets) nid = nid.substr(1, nid.size() - 2);
  const auto address = base::SocketAddress::from_ip(nid, 0);
  if (!address) return malformed(text, fmt::format("\"{}\" is no IP address", base::shown(nid)));
  if (address->is_v4() == has_brackets) {
    return malformed(text, has_brackets ? "brackets are for IPv6" : "an IPv6 address needs brackets");
  }
  const bool is_any = address->is_v4() ? nid == "0.0.0.0" : is_lo(*address);
  if (is_any) return malformed(text, "name one address of the host, not all of them");
  return *address;
}

// Parses a decimal number in first..most; `*` gives 0.
Result<std::uint32_t> parse_number(std::string_view text, std::string_view name, std::string_view digits,
                                   std::uint32_t first, std::uint32_t most, bool takes_star) {
  if (digits == "*" && takes_star) return 0U;
  std::uint32_t value = 0;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool is_number = fault == std::errc{} && end == digits.data() + digits.size();
  if (!is_number) return malformed(text, fmt::format("{} \"{}\" is not a number", name, base::shown(digits)));
  if (value < first || value > most) {
    return malformed(text, fmt::format("{} {} is not in {}..{}", name, value, first, most));
  }
  return value;
}

}  // namespace

bool is_lo(const base::SocketAddress& engine) {
  return engine.ip == engine::lo(0).ip;
}

bool is_same_network(const base::SocketAddress& a, const base::SocketAddress& b) {
  return is_lo(a) == is_lo(b) && a.is_v4() == b.is_v4();
}

Result<NetAddress> parse_address(std::string_view text) {
  const auto parts = cut(text);
  if (!parts) return std::unexpected(parts.error());
  const auto nid = parse_nid(text, parts->nid);
  if (!nid) return std::unexpected(nid.error());
  const auto& [pid_text, portal_text, tmid_text] = parts->numbers;
  const auto pid = parse_number(text, "pid", pid_text, 1, 65535, true);
  if (!pid) return std::unexpected(pid.error());
  const auto portal =
      parse_number(text, "portal", portal_text, 0, std::numeric_limits<std::uint32_t>::max() >> kTmidBits, false);
  if (!portal) return std::unexpected(portal.error());
  const auto tmid = parse_number(text, "tmid", tmid_text, 1, kTmidMax, true);
  if (!tmid) return std::unexpected(tmid.error());

  NetAddress address{.engine = *nid, .portal = *portal, .tmid = *tmid};
  address.engine.port = static_cast<std::uint16_t>(*pid);
  return address;
}

std::string nid_text(const base::SocketAddress& engine) {
  if (is_lo(engine)) return "0@lo";
  return engine.is_v4() ? engine.ip_text() + "@udp" : fmt::format("[{}]@udp", engine.ip_text());
}

std::string address_text(const engine::RemotePort& remote) {
  return fmt::format("{}:{}:{}:{}", nid_text(remote.engine), remote.engine.port, remote.port >> kTmidBits,
                     remote.port & kTmidMax);
}

Result<std::vector<std::string>> local_nids() {
  const auto addresses = base::local_addresses();
  if (!addresses) return std::unexpected(addresses.error());
  std::vector<std::string> nids{"0@lo"};
  for (const base::SocketAddress& address : *addresses) nids.push_back(nid_text(address));
  return nids;
}

Result<std::strong_ordering> compare_nids(std::string_view a, std::string_view b) {
  const auto first = parse_address(a);
  if (!first) return std::unexpected(first.error());
  const auto second = parse_address(b);
  if (!second) return std::unexpected(second.error());
  const auto nid_of = [](const NetAddress& address) { return std::pair(address.engine.ip, address.engine.scope); };
  return nid_of(*first) <=> nid_of(*second);
}

}  // namespace fairlead::net
