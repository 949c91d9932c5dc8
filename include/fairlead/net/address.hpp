#pragma once
// Addresses of transfer machines as text, `nid@network:pid:portal:tmid` (docs/net.md, "Addresses"):
//
//   10.0.0.5@udp:20480:34:1      IPv4 over UDP; pid is the UDP port (1..65535), portal 1..63, tmid 1..4095
//   [::1]@udp:20480:34:1         IPv6 in brackets; a zone as in [fe80::1%2] is an interface index
//   0@lo:20480:34:1              inside this process, without a network
//   10.0.0.5@udp:*:34:*          only in TransferMachine::start(): `*` selects the first free pid of the engine's range
//                                and the highest free tmid

#include <compare>
#include <string>
#include <string_view>
#include <vector>

#include <fairlead/error.hpp>

namespace fairlead::net {

/// The nids (network identifiers) on which a transfer machine of this process can start, e.g. {"0@lo", "127.0.0.1@udp",
/// "[::1]@udp"}. There is one for each address of an interface that is up. Each call asks the kernel. Any thread.
[[nodiscard]] Result<std::vector<std::string>> local_nids();

/// Orders two addresses by their nid only, i.e. by the text before the first colon outside of brackets. Two transfer
/// machines of one nid are `equal`. `invalid` names the malformed text; pid, portal and tmid may be `*`. Pure.
[[nodiscard]] Result<std::strong_ordering> compare_nids(std::string_view a, std::string_view b);

/// Returns the address of a transfer machine on a named host: resolve("server:20480", "34:1"). `host` is a host name or
/// an IP address (IPv6 in brackets), and the pid; `rest` is portal:tmid. Asks the system's resolver, which may take
/// seconds. `invalid`: malformed. `not_available`: the host has no address. Any thread.
[[nodiscard]] Result<std::string> resolve(std::string_view host, std::string_view rest);

}  // namespace fairlead::net
