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
#include <cstring>
#include <string_view>

#include "base/file_descriptor.hpp"
#include "base/local_addresses.hpp"
#include "tools/doctor_host.hpp"

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
}

}  // namespace fairlead::tools
