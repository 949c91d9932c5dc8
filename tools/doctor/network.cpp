// Interfaces, and what the kernel grants to a UDP socket.

#include <fairlead/options.hpp>

#include <fmt/format.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>

#include "base/file_descriptor.hpp"
#include "base/local_addresses.hpp"
#include "base/quantity.hpp"
#include "base/settings.hpp"
#include "tools/doctor/host.hpp"

namespace fairlead::tools {
namespace {

int mtu_of(const std::string& interface) {
  const base::FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  return ::ioctl(socket.get(), SIOCGIFMTU, &request) == 0 ? request.ifr_mtu : 0;
}

void look_at_interfaces(Findings& findings) {
  const auto interfaces = base::local_interfaces();
  if (!interfaces) {
    findings.push_back({Verdict::trouble, "address", interfaces.error().message, {}});
    return;
  }
  bool has_loopback = false, has_other = false;
  for (const base::Interface& one : *interfaces) {
    (one.address.is_loopback() ? has_loopback : has_other) = true;
    if (one.address.is_loopback()) continue;
    findings.push_back({Verdict::good,
                        "address",
                        fmt::format("{} {}, MTU {}", one.name, one.address.ip_text(), mtu_of(one.name)),
                        {}});
  }
  if (!has_other) {
    findings.push_back({Verdict::note, "address", "none but loopback: no other host can be reached",
                        "give an interface an address, or share the host's network with the container"});
  }
  if (!has_loopback) {
    findings.push_back(
        {Verdict::trouble, "address", "the interface lo is down: nothing reaches 127.0.0.1", "ip link set lo up"});
  }
}

std::uint64_t default_of(std::string_view option) {
  const auto table = option_table();
  const auto row = std::ranges::find(table, option, &OptionRow::name);
  return row == table.end() ? 0 : row->value_default;
}

/// Returns the value of the environment or the file of settings, or the default. The engine reports a malformed one.
std::uint64_t value_of(std::string_view option, const char* variable) {
  const auto given = base::Settings::read_if_good().find(variable);
  const auto number = given ? base::parse_quantity(given->text, "") : std::nullopt;
  return number.value_or(default_of(option));
}

/// Returns the UDP ports in use, by the kernel's tables.
std::set<std::uint64_t> ports_in_use() {
  std::set<std::uint64_t> ports;
  for (const char* table : {"/proc/net/udp", "/proc/net/udp6"}) {
    std::ifstream lines(table);
    std::string line;
    std::getline(lines, line);  // the heading
    while (std::getline(lines, line)) {
      // "  12: 0100007F:5000 00000000:0000 ...": the second word is the local address and port.
      const std::size_t begin = line.find(':', line.find(':') + 1) + 1;
      std::uint64_t port = 0;
      const auto [end, fault] = std::from_chars(line.data() + begin, line.data() + line.size(), port, 16);
      if (fault == std::errc()) ports.insert(port);
    }
  }
  return ports;
}

void look_at_ports(Findings& findings) {
  const std::uint64_t first = value_of("port_first", "FAIRLEAD_PORT_FIRST");
  const std::uint64_t count = value_of("port_count", "FAIRLEAD_PORT_COUNT"), last = first + count - 1;
  constexpr std::uint64_t kPorts = 65'536;
  if (first >= kPorts || count > kPorts - first) {
    return findings.push_back(
        {Verdict::trouble, "ports",
         fmt::format("{} UDP ports from {} end beyond 65535: no engine can start at a port of its "
                     "choice",
                     count, first),
         "lower FAIRLEAD_PORT_FIRST or FAIRLEAD_PORT_COUNT"});
  }
  const std::set<std::uint64_t> used = ports_in_use();
  const auto taken = static_cast<std::uint64_t>(std::distance(used.lower_bound(first), used.upper_bound(last)));
  if (taken >= count) {
    return findings.push_back({Verdict::trouble, "ports",
                               fmt::format("all UDP ports from {} to {} are in use: no engine can start", first, last),
                               "end a program, or select another range: FAIRLEAD_PORT_FIRST, FAIRLEAD_PORT_COUNT"});
  }
  findings.push_back({Verdict::good,
                      "ports",
                      fmt::format("UDP ports {} to {}, {} of them in use: firewalls between hosts have to pass them in "
                                  "both directions",
                                  first, last, taken),
                      {}});
}

/// Tests which socket buffer size the kernel grants.
void try_buffer(Findings& findings, int socket, int kind, std::string_view option, std::string_view limit) {
  const std::uint64_t wanted = default_of(option);
  const int asked = static_cast<int>(wanted);
  const int forced = kind == SO_RCVBUF ? SO_RCVBUFFORCE : SO_SNDBUFFORCE;
  if (::setsockopt(socket, SOL_SOCKET, forced, &asked, sizeof asked) != 0)
    ::setsockopt(socket, SOL_SOCKET, kind, &asked, sizeof asked);
  int granted = 0;
  socklen_t size = sizeof granted;
  ::getsockopt(socket, SOL_SOCKET, kind, &granted, &size);
  // The kernel doubles the value for its own overhead.
  const auto half = static_cast<std::uint64_t>(std::max(granted, 0)) / 2;
  const std::string text = fmt::format("{}: {} KiB of {}", option, half / 1024, wanted / 1024);
  if (half >= wanted) return findings.push_back({Verdict::good, "socket", text, {}});
  findings.push_back({Verdict::note, "socket", text + ": bursts are lost sooner",
                      fmt::format("sysctl -w net.core.{}={}", limit, wanted)});
}

void try_udp(Findings& findings) {
  const base::FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) {
    findings.push_back({Verdict::trouble, "socket", fmt::format("no UDP socket: {}", std::strerror(errno)), {}});
    return;
  }
  try_buffer(findings, socket.get(), SO_RCVBUF, "receive_buffer", "rmem_max");
  try_buffer(findings, socket.get(), SO_SNDBUF, "send_buffer", "wmem_max");
  const auto has = [&](int option, int value) {
    return ::setsockopt(socket.get(), IPPROTO_UDP, option, &value, sizeof value) == 0;
  };
  const bool has_gso = has(UDP_SEGMENT, 1472), has_gro = has(UDP_GRO, 1);
  const std::string text =
      fmt::format("segmentation offload {}, receive offload {}", has_gso ? "yes" : "no", has_gro ? "yes" : "no");
  findings.push_back({has_gso && has_gro ? Verdict::good : Verdict::note, "socket", text,
                      has_gso && has_gro ? "" : "they need Linux 5.0; without them long messages cost more calls"});
}

}  // namespace

void examine_network(Findings& findings) {
  look_at_interfaces(findings);
  try_udp(findings);
  look_at_ports(findings);
}

}  // namespace fairlead::tools
