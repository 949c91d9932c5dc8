#pragma once
// The messages of this process to other managers: keeps each until its outcome is known, and schedules retries. It does
// no I/O; the time is an argument.
//
// An id has few messages at once. A stranger can cause answers without an id; those have a limited number of places,
// and excess ones are dropped and counted. Each peer is asked by at most one `alive` at a time.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include <fairlead/error.hpp>
#include <fairlead/time.hpp>

#include "doors/rdma_cm/message.hpp"
#include "doors/rdma_cm/places.hpp"

namespace fairlead::rdma_cm {

struct Sent {
  std::uint32_t handle = 0;
  std::uint64_t name = 0;  // name of the connection; 0: an alive, or an answer without an id
  Ip local{};
  Ip host{};       // IP address of `to`
  std::string to;  // address of a manager
  Message message;
  unsigned tries = 0;
};

struct Failed {
  Sent sent;
  Status why = Status::ok;
};

class Outbox {
 public:
  static constexpr std::uint32_t kAnswersMax = 256;  // concurrent answers without an id
  static constexpr Duration kAgainAfter = std::chrono::milliseconds(10);
  static constexpr unsigned kTriesMax = 500;

  /// Adds a message. Returns its tag, or 0 if it must not be sent.
  std::uint64_t add(Sent sent);
  /// Returns a message that is in the outbox.
  const Sent& find(std::uint64_t tag) const { return sent_.at(tag).sent; }
  /// Records that the carrier did not accept the message.
  void refuse(std::uint64_t tag, Status why, Instant now);
  /// Records the outcome. Returns the message if it has failed for good.
  std::optional<Failed> finish(std::uint64_t tag, Status status, Instant now);
  /// Returns a message that is due for another try, or to be given up.
  std::optional<std::uint64_t> take_due(Instant now);
  /// Removes and returns the message if it must not be tried again.
  std::optional<Failed> give_up(std::uint64_t tag);

  bool is_empty() const { return sent_.empty(); }
  /// Returns whether an alive is on its way to this manager.
  bool is_asking(const std::string& manager) const { return asked_.contains(manager); }
  /// Returns whether a rejection by this connection is on its way.
  bool is_rejecting(std::uint64_t name) const;
  Instant next_due() const { return due_.empty() ? kNever : due_.begin()->first; }
  std::uint64_t sent_again() const { return sent_again_; }
  std::uint64_t answers_dropped() const { return answers_dropped_; }

 private:
  struct Entry {
    Sent sent;
    Status why = Status::ok;  // why it must be tried again or given up
  };
  Sent remove(std::uint64_t tag);

  std::unordered_map<std::uint64_t, Entry> sent_;
  std::set<std::pair<Instant, std::uint64_t>> due_;
  std::set<std::string> asked_;  // peers to which an alive is on its way
  Places answers_{kAnswersMax};
  std::uint64_t next_tag_ = 1, sent_again_ = 0, answers_dropped_ = 0;
};

}  // namespace fairlead::rdma_cm
