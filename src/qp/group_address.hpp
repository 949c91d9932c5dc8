#pragma once
// The IP address for datagrams to a group's GID, as in RoCE v2. ::ffff:a.b.c.d and ff0e::ffff:a.b.c.d are the IPv4
// group a.b.c.d; ff.. is an IPv6 group. A device with an IPv4 address reaches IPv4 groups only. It maps any other GID
// to 239.x.y.z with the last three bytes of the GID. Several GIDs may share an address, so datagrams carry the GID.

#include <algorithm>
#include <cstdint>

#include <fairlead/verbs/types.hpp>

#include "base/socket_address.hpp"

namespace fairlead::qp {

/// Returns whether the GID is an IPv4 group.
inline bool is_v4_group(const verbs::Gid& gid) {
  const bool has_prefix = (gid[0] == 0 && gid[1] == 0) || (gid[0] == 0xFF && gid[1] == 0x0E);
  return has_prefix && std::all_of(gid.begin() + 2, gid.begin() + 10, [](std::uint8_t byte) { return byte == 0; }) &&
         gid[10] == 0xFF && gid[11] == 0xFF && (gid[12] & 0xF0) == 0xE0;
}
inline bool is_group(const verbs::Gid& gid) {
  return gid[0] == 0xFF || is_v4_group(gid);
}
/// Returns the form of the GID that datagrams carry.
inline verbs::Gid canonical_group(verbs::Gid gid) {
  if (is_v4_group(gid)) gid[0] = gid[1] = 0;
  return gid;
}

/// Returns the address to which an engine at `local` sends datagrams of a group. `gid` has the canonical form.
inline base::SocketAddress address_of_group(const verbs::Gid& gid, const base::SocketAddress& local,
                                            std::uint16_t port) {
  base::SocketAddress to{.ip = gid, .scope = 0, .port = port};
  if (local.is_v4() && !is_v4_group(gid))
    to.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 239, gid[13], gid[14], gid[15]};
  if (!local.is_v4() && is_v4_group(gid)) to.ip[0] = 0xFF, to.ip[1] = 0x0E;
  return to;
}

}  // namespace fairlead::qp
