#pragma once
// Active messages between the hosts of the swarm of queue pairs: requests of all lengths, each answered by a reply.
// What must hold: a request comes once at most, whole, to whom it was sent; its sender hears of it once at most, by a
// reply or by its return; and where nothing went wrong all of them are answered.

#include <cstdint>
#include <deque>
#include <vector>

#include "sim/pair_host.hpp"

namespace fairlead::sim {

class ActiveTraffic {
 public:
  explicit ActiveTraffic(PairShared& shared) : shared_(shared) {}

  /// One request from one host to another.
  void send();
  /// Takes and answers what has come to a host.
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

  /// The world had faults, or the session between its two hosts was told to be lost.
  bool may_fail(const Request& request) const;
  void take_request(PairHost& host, engine::Arrival& arrival, Request& request);
  void reply(PairHost& host, const engine::Arrival& arrival);

  PairShared& shared_;
  std::deque<Request> requests_;  // by name; their memory lives as long as the run
  std::uint64_t answered_ = 0;
};

}  // namespace fairlead::sim
