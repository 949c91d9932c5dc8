#pragma once
// Active messages between the hosts of the queue-pair swarm: requests of all lengths, each answered by a reply.
// Invariants: a request arrives at most once, complete, and at its target. Its sender gets at most one result, a reply
// or the returned request. Without faults, all requests are answered.

#include <cstdint>
#include <deque>
#include <vector>

#include "sim/pair_host.hpp"

namespace fairlead::sim {

class ActiveTraffic {
 public:
  explicit ActiveTraffic(PairShared& shared) : shared_(shared) {}

  /// Sends one request between two random honest hosts.
  void send();
  /// Takes and answers the messages that have arrived at a host.
  void take(PairHost& host);
  void check_end();

  std::uint64_t sent() const { return requests_.size(); }
  std::uint64_t answered() const { return answered_; }

 private:
  struct Request {
    std::uint32_t from = 0, from_life = 0, to = 0;
    std::vector<std::byte> bytes{};
    iovec piece{};
    bool has_come = false, has_ended = false;
  };

  /// Returns whether a fault or a reported loss of the session excuses a failure.
  bool may_fail(const Request& request) const;
  bool is_honest(const engine::Arrival& arrival) const;
  void take_request(PairHost& host, engine::Arrival& arrival, Request& request);
  void reply(PairHost& host, const engine::Arrival& arrival);

  PairShared& shared_;
  std::deque<Request> requests_;  // by name; their memory lasts for the whole run
  std::uint64_t answered_ = 0;
};

}  // namespace fairlead::sim
