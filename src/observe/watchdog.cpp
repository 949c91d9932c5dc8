#include "observe/watchdog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace fairlead::observe {
namespace {

constexpr auto kStallMin = std::chrono::milliseconds(200);
constexpr int kRoundTrips = 10;

double seconds(base::Duration duration) {
  return std::chrono::duration<double>(duration).count();
}
double milliseconds(base::Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

}  // namespace

// In round trips, not in timeouts: those double while nothing moves.
base::Duration stall_after(const PeerVitals& vitals) noexcept {
  return std::max<base::Duration>(kStallMin, kRoundTrips * vitals.round_trip);
}

Stall diagnose(const PeerVitals& vitals, base::Instant now) noexcept {
  if (!vitals.is_connected) {
    return vitals.messages_queued > 0 || vitals.is_answer_awaited ? Stall::never_heard : Stall::none;
  }
  if (vitals.segments_in_flight > 0) {
    return now - vitals.last_heard < stall_after(vitals) ? Stall::one_way : Stall::silent;
  }
  if (vitals.messages_queued > 0) return Stall::no_room;
  if (vitals.messages_arriving > 0) return Stall::arriving;
  return vitals.is_answer_awaited ? Stall::unanswered : Stall::none;
}

std::string describe_stall(const PeerVitals& vitals, base::Duration stalled_for, base::Instant now) {
  const std::string head =
      fmt::format("waiting for {} for {:.1f} s: ", vitals.address.to_string(), seconds(stalled_for));
  const std::string in_flight =
      fmt::format("{} segments ({} bytes)", vitals.segments_in_flight, vitals.bytes_in_flight);
  switch (diagnose(vitals, now)) {
    case Stall::none:
      return {};
    case Stall::never_heard:
      return head + fmt::format(
                        "it has not answered our hello, and {} messages wait for that; hellos continue every {:.0f} "
                        "ms. Is the peer running, is its address right, does a firewall let UDP pass both ways?",
                        vitals.messages_queued, milliseconds(vitals.resend_after));
    case Stall::silent:
      return head + fmt::format(
                        "nothing was heard from it for {:.1f} s, and it owes the acknowledgement of {}; {} "
                        "messages queue behind them; resends go on every {:.1f} ms. Is the peer's process alive "
                        "and not stopped, does the network still lead there?",
                        seconds(now - vitals.last_heard), in_flight, vitals.messages_queued,
                        milliseconds(vitals.resend_after));
    case Stall::one_way:
      return head + fmt::format(
                        "it was heard {:.1f} ms ago but acknowledges none of {}; {} messages queue behind them. "
                        "What we send is lost on the way while its datagrams come through: a firewall of one "
                        "direction, or a hop that drops long datagrams in silence (try "
                        "FAIRLEAD_DATAGRAM_SIZE=1200)",
                        milliseconds(now - vitals.last_heard), in_flight, vitals.messages_queued);
    case Stall::no_room:
      return head + fmt::format(
                        "{} messages are queued and nothing is in flight: it grants us no room, or the path of "
                        "this host takes nothing (see path.send_later and path.send_no_buffers). Does the peer take "
                        "what it has received?",
                        vitals.messages_queued);
    case Stall::arriving:
      return head +
             fmt::format(
                 "{} messages from it have arrived in part and the rest does not come; it was heard {:.1f} s ago. "
                 "Is the peer's process alive and not stopped, does the network still lead from there to here?",
                 vitals.messages_arriving, seconds(now - vitals.last_heard));
    case Stall::unanswered:
      return head +
             "it has acknowledged our request for a bulk transfer but not answered it. Its engine lives but does "
             "not get to the answer: is its process stopped or overloaded? Cancel the transfer to end the wait";
  }
  return {};
}

std::string Watchdog::look(std::uint32_t peer, const PeerVitals& vitals, base::Instant now) {
  if (peer >= states_.size()) states_.resize(peer + 1);
  State& state = states_[peer];
  const bool is_pending = diagnose(vitals, now) != Stall::none;
  if (!is_pending || state.looks == 0 || state.moved != vitals.moved) {
    const State before = state;
    state = {.moved = vitals.moved, .since = now, .looks = is_pending ? 1U : 0U};
    if (!before.is_told || before.moved == vitals.moved) return {};
    return fmt::format("{} moves again after {:.1f} s", vitals.address.to_string(), seconds(now - before.since));
  }
  ++state.looks;
  if (state.is_told || state.looks < kLooksMin || now - state.since < stall_after(vitals)) return {};
  state.is_told = true;
  return describe_stall(vitals, now - state.since, now);
}

void Watchdog::forget(std::uint32_t peer) noexcept {
  if (peer < states_.size()) states_[peer] = {};
}

}  // namespace fairlead::observe
