#pragma once
// Builds an IPv4 UDP datagram with any sender address, for a raw socket.

#include <arpa/inet.h>
#include <netinet/ip.h>
#include <netinet/udp.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/socket_address.hpp"

namespace fairlead::tests {

inline std::uint32_t ipv4_of(const base::SocketAddress& address) {
  std::uint32_t ip = 0;
  std::memcpy(&ip, address.ip.data() + 12, sizeof ip);
  return ip;
}

/// The kernel fills in the rest of the IP header. A UDP checksum of 0 means none.
inline std::vector<std::byte> forged_packet(const base::SocketAddress& from, const base::SocketAddress& to,
                                            std::span<const std::byte> datagram) {
  struct {
    iphdr ip;
    udphdr udp;
  } head{};
  head.ip.version = 4;
  head.ip.ihl = 5;
  head.ip.ttl = 64;
  head.ip.protocol = IPPROTO_UDP;
  head.ip.saddr = ipv4_of(from);
  head.ip.daddr = ipv4_of(to);
  head.udp.source = htons(from.port);
  head.udp.dest = htons(to.port);
  head.udp.len = htons(static_cast<std::uint16_t>(sizeof head.udp + datagram.size()));
  std::vector<std::byte> packet(sizeof head + datagram.size());
  std::memcpy(packet.data(), &head, sizeof head);
  if (!datagram.empty()) std::memcpy(packet.data() + sizeof head, datagram.data(), datagram.size());
  return packet;
}

}  // namespace fairlead::tests
