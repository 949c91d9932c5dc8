#pragma once
// Forged ICMP messages.

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/file_descriptor.hpp"
#include "base/socket_address.hpp"

namespace fairlead::path {

inline bool bring_up_loopback() {
  const base::FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strncpy(request.ifr_name, "lo", sizeof request.ifr_name - 1);
  if (::ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0) return false;
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  return ::ioctl(socket.get(), SIOCSIFFLAGS, &request) == 0;
}

inline std::uint16_t internet_checksum(const std::byte* bytes, std::size_t size) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i + 1 < size; i += 2) {
    std::uint16_t word = 0;
    std::memcpy(&word, bytes + i, sizeof word);
    sum += word;
  }
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

/// Tells `from` that its datagrams to `to` do not arrive, and why: `code` of ICMP_DEST_UNREACH.
inline bool forge_unreachable(const base::SocketAddress& from, const base::SocketAddress& to, std::uint8_t code,
                              std::uint16_t mtu = 0) {
  struct {
    icmphdr icmp;
    iphdr ip;
    udphdr udp;
  } lie{};
  lie.icmp.type = ICMP_DEST_UNREACH;
  lie.icmp.code = code;
  lie.icmp.un.frag.mtu = htons(mtu);
  lie.ip.version = 4;
  lie.ip.ihl = 5;
  lie.ip.tot_len = htons(1428);
  lie.ip.protocol = IPPROTO_UDP;
  std::memcpy(&lie.ip.saddr, from.ip.data() + 12, sizeof lie.ip.saddr);
  std::memcpy(&lie.ip.daddr, to.ip.data() + 12, sizeof lie.ip.daddr);
  lie.udp.source = htons(from.port);
  lie.udp.dest = htons(to.port);
  lie.icmp.checksum = internet_checksum(reinterpret_cast<const std::byte*>(&lie), sizeof lie);
  const base::FileDescriptor raw(::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP));
  sockaddr_in victim{};
  victim.sin_family = AF_INET;
  victim.sin_addr.s_addr = lie.ip.saddr;
  return raw.is_open() && ::sendto(raw.get(), &lie, sizeof lie, 0, reinterpret_cast<const sockaddr*>(&victim),
                                   sizeof victim) == static_cast<ssize_t>(sizeof lie);
}

/// Tells `from` that its datagrams to `to` are too long for a link with an MTU of 552.
inline bool forge_too_big(const base::SocketAddress& from, const base::SocketAddress& to) {
  return forge_unreachable(from, to, ICMP_FRAG_NEEDED, 552);
}

}  // namespace fairlead::path
