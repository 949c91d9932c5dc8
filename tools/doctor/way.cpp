#include "tools/doctor/way.hpp"

#include <fmt/format.h>

#include <string>

#include "path/route_mtu.hpp"
#include "tools/doctor/closed_port.hpp"

namespace fairlead::tools {
namespace {

constexpr std::uint32_t kTagMost = 64;  // bytes that sealing may take of each datagram

}  // namespace

Finding find_blocked_direction(const Way& way) {
  if (is_refused_at_closed_port(way.peer)) {
    return {Verdict::trouble, "firewall",
            fmt::format("UDP arrives at {}: its kernel refuses a closed port. So the answers from port {} are dropped "
                        "on the way back, or only this port is closed on the way there",
                        way.peer.ip_text(), way.peer.port),
            fmt::format("permit UDP to port {} in the input rules of this host, and from port {} in the output rules "
                        "there (`nft list ruleset`); then look at the input rules there",
                        way.own.port, way.peer.port)};
  }
  return {Verdict::trouble, "firewall",
          fmt::format("nothing comes back from {}, not even for a closed port: datagrams are dropped on the way there, "
                      "or the host is down",
                      way.peer.ip_text()),
          fmt::format("permit UDP to port {} in the input rules there (`nft list ruleset`) and on the routers between",
                      way.peer.port)};
}

std::optional<DatagramSizes> datagram_sizes_of(const net::PeerFacts& facts, const Way& way) {
  if (facts.datagram_there == 0) return std::nullopt;
  return DatagramSizes{.there = facts.datagram_there,
                       .back = facts.datagram_here,
                       .limit = path::RouteMtu(way.own).datagram_size_max(way.peer)};
}

bool are_final(const DatagramSizes& sizes) {
  return sizes.there + kTagMost >= sizes.limit && sizes.back + kTagMost >= sizes.limit;
}

Finding judge(const DatagramSizes& sizes) {
  std::string text = fmt::format("those of up to {} bytes arrive there, ", sizes.there);
  text += sizes.back == 0 ? "the peer has probed none back" : fmt::format("of up to {} bytes here", sizes.back);
  if (sizes.there + kTagMost >= sizes.limit && (sizes.back == 0 || sizes.back + kTagMost >= sizes.limit))
    return {Verdict::good, "datagrams", std::move(text), {}};
  text += fmt::format("; this host's interface takes {}", sizes.limit);
  return {Verdict::note, "datagrams", std::move(text),
          "set one MTU on all interfaces between (`ip link set dev NAME mtu BYTES`), or permit ICMP and longer "
          "datagrams on the routers; FAIRLEAD_DATAGRAM_SIZE limits them on purpose"};
}

}  // namespace fairlead::tools
