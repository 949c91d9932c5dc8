#pragma once
// The engine's record of its peers for failures: events for the flight recorder, and the reports of the watchdog and of
// lost peers. Reports are kept until they are fetched; the engine itself prints nothing (docs/flight-recorder.md).
//
// The link counts for all peers together. What has changed since the last check belongs to the peer of the last call.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/say.hpp"
#include "base/time.hpp"
#include "link/link.hpp"
#include "observe/engine_stats.hpp"
#include "observe/flight_recorder.hpp"
#include "observe/watchdog.hpp"
#include "shm/transport.hpp"

namespace fairlead::transport {

class FlightLog {
 public:
  FlightLog(const link::Link& link, std::uint32_t peers_max)
      : link_(link), recorder_(observe::FlightRecorder::kRingsMax, peers_max) {
    known_.reserve(peers_max);
  }

  /// Call after a transport accepted messages. Those of the shared-memory transport are not recorded.
  void submitted(link::PeerHandle peer, std::uint64_t messages, std::uint64_t bytes, base::Instant now) {
    if (shm::Transport::has(peer)) return;
    note(peer, observe::FlightKind::submitted, messages, bytes, now);
    if (is_watching_) return;
    is_watching_ = true;
    watch_at_ = now + kWatchEvery;
  }
  /// Call after Link::receive() and its deliveries.
  void received(link::PeerHandle peer, std::uint64_t bytes, base::Instant now);
  /// Call after Link::next_train().
  void sent(const link::Train& train, bool is_taken, base::Instant now);

  void connected(link::PeerHandle peer, base::Instant now) { note(peer, observe::FlightKind::connected, 0, 0, now); }
  /// Reports the peer's last events under the text of `headline()`.
  template <typename Headline>
  void lost(link::PeerHandle peer, Status status, base::Instant now, Headline&& headline) {
    note_lost(peer, status, now);
    report(LogTopic::link, [&] { return headline() + "\n" + describe(peer, now); });
  }
  /// Call instead of lost() if the peer had announced its end. Returns whether nothing was pending, so that nothing
  /// needs to be reported.
  bool left(link::PeerHandle peer, Status status, base::Instant now) {
    const bool is_quiet = link_.counters().messages_failed == seen_.failed;
    if (is_quiet) note_lost(peer, status, now);
    return is_quiet;
  }
  /// Forgets the peer; its handle is invalid from now on.
  void forget(link::PeerHandle peer);

  /// Returns when watch() must be called again; kNever while nothing is pending.
  base::Instant next_deadline() const { return is_watching_ ? watch_at_ : base::kNever; }
  bool is_watch_due(base::Instant now) const { return now >= watch_at_; }
  /// Checks all peers that had events. `is_answer_awaited(slot)`: whether a request to the peer waits for its answer.
  template <typename IsAnswerAwaited>
  void watch(base::Instant now, IsAnswerAwaited&& is_answer_awaited) {
    watch_at_ = now + kWatchEvery;
    is_watching_ = false;
    recorder_.for_each_peer([&](std::uint32_t slot) { look(slot, is_answer_awaited(slot), now); });
  }

  /// Adds the text of `sentence()`, one or more lines, to the report, if there is memory.
  template <typename Sentence>
  void report(LogTopic topic, Sentence&& sentence, LogLevel level = LogLevel::info) {
    base::say([&] { append(level, topic, sentence()); });
  }
  bool has_report() const { return !report_.empty(); }
  /// Returns what was reported since the last call, at most kReportMax bytes.
  std::vector<base::LogNote> take_report() { return std::exchange(report_, {}); }
  /// Describes the last events of a peer; empty if there are none.
  std::string describe(link::PeerHandle peer, base::Instant now) const;
  /// Returns the events of all peers.
  std::vector<observe::PeerFlight> flights() const;

 private:
  static constexpr std::size_t kReportMax = std::size_t{64} * 1024;
  static constexpr auto kWatchEvery = std::chrono::milliseconds(100);

  /// The link's counters at the last check.
  struct Seen {
    std::uint64_t acked = 0, delivered = 0, refused = 0, failed = 0;
    std::uint64_t resends = 0, fast = 0, probe = 0, timeout = 0;
  };
  struct Known {
    link::PeerHandle handle{.slot = ~0U, .generation = 0};
    std::uint64_t moved = 0;
  };

  void note(link::PeerHandle peer, observe::FlightKind kind, std::uint64_t number, std::uint64_t size,
            base::Instant now) {
    if (peer.slot >= known_.size() || known_[peer.slot].handle != peer) [[unlikely]]
      meet(peer);
    recorder_.record(peer.slot, kind, number, size, now);
  }
  void append(LogLevel level, LogTopic topic, std::string text);
  void note_lost(link::PeerHandle peer, Status status, base::Instant now);
  void note_resends(base::Instant now);
  void meet(link::PeerHandle peer);
  void look(std::uint32_t slot, bool is_answer_awaited, base::Instant now);
  const link::Link& link_;
  observe::FlightRecorder recorder_;
  observe::Watchdog watchdog_;
  std::vector<Known> known_;  // indexed by peer slot
  Seen seen_;
  base::SocketAddress last_to_;  // most trains have the destination of the previous one
  link::PeerHandle last_peer_;
  base::Instant watch_at_{};
  bool is_watching_ = false;  // something was pending at the last check, or submitted since
  std::vector<base::LogNote> report_;
};

}  // namespace fairlead::transport
