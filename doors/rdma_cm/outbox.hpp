#pragma once
// What this process says to other managers, each message until its outcome is known, and when it is tried again. No
// I/O; the time is an argument. An id has a few messages at once; an answer that no id stands behind is caused by a
// stranger, so those have places of their own, and what finds none is dropped and counted. A peer is asked once at a
// time whether it lives.

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
  std::uint64_t name = 0;  // of the connection; 0: an alive, or an answer without an id
  Ip local{};
  Ip host{};       // where `to` is
  std::string to;  // a manager's address
  Message message;
  unsigned tries = 0;
};

struct Failed {
  Sent sent;
  Status why = Status::ok;
};

class Outbox {
 public:
  static constexpr std::uint32_t kAnswersMax = 256;  // without an id, at once
  static constexpr Duration kAgainAfter = std::chrono::milliseconds(10);
  static constexpr unsigned kTriesMax = 500;

  /// The tag to send it by; 0: it is not to be sent.
  std::uint64_t add(Sent sent);
  /// Of a message that is here.
  const Sent& find(std::uint64_t tag) const { return sent_.at(tag).sent; }
  /// The carrier has not taken it.
  void refuse(std::uint64_t tag, Status why, Instant now);
  /// The carrier tells what came of it. Returns it if it has failed for good.
  std::optional<Failed> finish(std::uint64_t tag, Status status, Instant now);
  /// One that is due to be sent again, or to be given up.
  std::optional<std::uint64_t> take_due(Instant now);
  /// Takes it out if it is not to be tried again.
  std::optional<Failed> give_up(std::uint64_t tag);

  bool is_empty() const { return sent_.empty(); }
  /// Whether a rejection by this connection is on its way.
  bool is_rejecting(std::uint64_t name) const;
  Instant next_due() const { return due_.empty() ? kNever : due_.begin()->first; }
  std::uint64_t sent_again() const { return sent_again_; }
  std::uint64_t answers_dropped() const { return answers_dropped_; }

 private:
  struct Entry {
    Sent sent;
    Status why = Status::ok;  // it is to be tried again, or given up
  };
  Sent remove(std::uint64_t tag);

  std::unordered_map<std::uint64_t, Entry> sent_;
  std::set<std::pair<Instant, std::uint64_t>> due_;
  std::set<std::string> asked_;  // peers whose alive is on its way
  Places answers_{kAnswersMax};
  std::uint64_t next_tag_ = 1, sent_again_ = 0, answers_dropped_ = 0;
};

}  // namespace fairlead::rdma_cm
