#pragma once
// Reports when nothing moves between this side and a peer although something should: once, in one paragraph. It tells
// who waits for whom, why, since when, and what to do (docs/flight-recorder.md). Pure: facts and the time are
// arguments, the text is the result.

#include <cstdint>
#include <string>
#include <vector>

#include "base/socket_address.hpp"
#include "base/time.hpp"

namespace fairlead::observe {

/// The state of a peer at one moment.
struct PeerVitals {
  base::SocketAddress address;
  bool is_connected = false;
  base::Duration round_trip{};
  base::Duration resend_after{};  // the timeout in force
  base::Instant last_heard{};     // zero if never
  std::uint32_t segments_in_flight = 0;
  std::uint64_t bytes_in_flight = 0;
  std::uint64_t messages_queued = 0;
  std::uint32_t messages_arriving = 0;  // received in part
  bool is_answer_awaited = false;       // the peer has our request and has not answered it
  std::uint64_t moved = 0;              // changes with each acknowledgement and each delivery from the peer
};

enum class Stall : std::uint8_t {
  none,         // nothing is pending
  never_heard,  // the connection waits for the peer's first answer
  silent,       // segments are in flight, and nothing comes back
  one_way,      // something comes back, but no acknowledgement
  no_room,      // messages are queued, nothing is in flight
  arriving,     // a message has arrived in part, and does not go on
  unanswered,   // the peer has acknowledged a request and does not answer it
};

/// Returns how long nothing may move before it is a stall.
base::Duration stall_after(const PeerVitals& vitals) noexcept;
/// Returns what a peer without any movement is waiting for.
Stall diagnose(const PeerVitals& vitals, base::Instant now) noexcept;
/// Returns the paragraph, in one line; empty for Stall::none.
std::string describe_stall(const PeerVitals& vitals, base::Duration stalled_for, base::Instant now);

class Watchdog {
 public:
  /// To be called from time to time for each peer; `peer` is a small number chosen by the caller. Returns a paragraph
  /// when a stall is noticed, a line when things move again, otherwise an empty text.
  std::string look(std::uint32_t peer, const PeerVitals& vitals, base::Instant now);
  /// Forgets the peer; its number may name another one from now on.
  void forget(std::uint32_t peer) noexcept;

 private:
  /// Minimum of calls before a stall counts: a process that was stopped itself has seen nothing.
  static constexpr std::uint32_t kLooksMin = 3;

  struct State {
    std::uint64_t moved = 0;
    base::Instant since;
    std::uint32_t looks = 0;  // calls since then; 0: nothing is pending
    bool is_told = false;
  };
  std::vector<State> states_;  // indexed by peer
};

}  // namespace fairlead::observe
