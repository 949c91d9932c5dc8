#pragma once

#include <cstdint>
#include <string>

namespace fairlead::net {

/// Why operations with a peer fail, as far as a program may act on it. TransferMachine::describe() names each cause.
enum class PeerProblem : std::uint8_t {
  none,            ///< the peer is not lost
  never_heard,     ///< it has never answered: it does not run, or something drops the datagrams
  nobody_listens,  ///< a kernel says that no process listens there: it does not run, or a firewall rejects
  no_machine,      ///< the process there has no such transfer machine
  other            ///< another cause
};

/// What is known of the host behind an end point.
struct PeerFacts {
  PeerProblem problem = PeerProblem::none;
  bool is_translated = false;        ///< a NAT translates an address on the way
  std::string release;               ///< of Fairlead there, "0.2.0"; empty if unknown, as through shared memory
  std::uint32_t datagram_there = 0;  ///< bytes of the longest datagram that arrives there; 0: not over UDP, or unknown
  std::uint32_t datagram_here = 0;   ///< bytes of the longest of its probes that has arrived here; 0: none has
};

}  // namespace fairlead::net
