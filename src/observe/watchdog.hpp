#pragma once
// Says when nothing has moved between us and a peer though something should, once and in one paragraph: who waits for
// whom, why, since when, and what to do (docs/flight-recorder.md). Pure: facts and the time come in, text goes out.

#include <cstdint>
#include <string>
#include <vector>

#include "base/socket_address.hpp"
#include "base/time.hpp"

namespace fairlead::observe {

/// What is known of a peer at one moment.
struct PeerVitals {
  base::SocketAddress address;
  bool is_connected = false;
  base::Duration round_trip{};
  base::Duration resend_after{};  // the timeout in force
  base::Instant last_heard{};     // epoch of the clock if never
  std::uint32_t segments_in_flight = 0;
  std::uint64_t bytes_in_flight = 0;
  std::uint64_t messages_queued = 0;
  std::uint32_t messages_arriving = 0;  // received in part
  bool is_answer_awaited = false;       // the peer has our request and owes the answer
  std::uint64_t moved = 0;              // changes whenever something was acknowledged by the peer or delivered from it
};

enum class Stall : std::uint8_t {
  none,         // nothing is to be done
  never_heard,  // the connection waits for the peer's first answer
  silent,       // segments are in flight and nothing at all comes back
  one_way,      // something comes back, but not for what is in flight
  no_room,      // messages are queued, nothing is in flight
  arriving,     // part of a message has come, the rest does not
  unanswered,   // the peer has acknowledged a request and does not answer it
};

/// How long nothing may move before it is a stall.
base::Duration stall_after(const PeerVitals& vitals) noexcept;
/// What a peer with whom nothing moves is waiting for.
Stall diagnose(const PeerVitals& vitals, base::Instant now) noexcept;
/// The paragraph, of one line; empty for Stall::none.
std::string describe_stall(const PeerVitals& vitals, base::Duration stalled_for, base::Instant now);

class Watchdog {
 public:
  /// To be called now and then, the peer named by a small number of the caller's. A paragraph when a stall is noticed,
  /// a line when things move again, else nothing.
  std::string look(std::uint32_t peer, const PeerVitals& vitals, base::Instant now);
  /// The number names another peer from now on.
  void forget(std::uint32_t peer) noexcept;

 private:
  /// A process that was stopped itself has seen nothing: time counts only if it was looked at.
  static constexpr std::uint32_t kLooksMin = 3;

  struct State {
    std::uint64_t moved = 0;
    base::Instant since;
    std::uint32_t looks = 0;  // since then, 0: nothing to be done
    bool is_told = false;
  };
  std::vector<State> states_;  // by peer
};

}  // namespace fairlead::observe
