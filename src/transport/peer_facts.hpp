#pragma once
// What programs may decide by about a peer. The sentences about it are for people.

#include <cstdint>
#include <string>

namespace fairlead::transport {

/// Why a peer is lost.
enum class PeerProblem : std::uint8_t {
  none,            // it is not lost
  never_heard,     // no answer, and no other sign of what is wrong
  nobody_listens,  // a kernel says that no process listens there
  other            // a known cause, which the sentence names
};

struct PeerFacts {
  PeerProblem problem = PeerProblem::none;
  bool is_met = false;         // an engine answers there
  bool is_translated = false;  // a NAT translates an address on the way
  // Of a peer over UDP that has answered; else 0.
  std::uint32_t release = 0;        // of its library, for release_text()
  std::uint32_t datagram_size = 0;  // the longest datagram to it that has arrived
  std::uint32_t longest_probe = 0;  // the longest of its probes that has arrived here
};

/// Returns "0.2.0" for major << 16 | minor << 8 | patch; empty for 0, an unknown release.
std::string release_text(std::uint32_t release);

}  // namespace fairlead::transport
