#pragma once
// A bundle behind its face: its endpoints, the one lock of a parallel bundle, and who sleeps.
//
// Handlers run without the lock, so that a parallel bundle runs several at once; an arrival belongs to the thread that
// took it. In a sequential bundle the lock does nothing. `waiting` lets one thread at a time sleep in the engine, the
// others wait for it to wake; who takes an endpoint away interrupts and takes it first, so that nobody sleeps on a port
// that is gone. While requests are outstanding the sleeper wakes to look whether their time is over or their peer is
// lost; else it sleeps until something comes, and whoever sends the first request wakes it.

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include <fairlead/am/bundle.hpp>

#include "am/domain_state.hpp"
#include "am/endpoint_state.hpp"
#include "base/clock_pace.hpp"
#include "base/file_descriptor.hpp"
#include "base/thread.hpp"

namespace fairlead::am {

struct BundleState {
  BundleState(Bundle& face, std::shared_ptr<DomainState> domain, BundleMode mode);
  ~BundleState();

  using Lock = std::unique_lock<BundleLock>;

  bool is_inherited() const { return domain->is_inherited(); }
  EndpointState* find(const Endpoint& endpoint) const;
  /// Takes it out, while nobody sleeps on it.
  std::unique_ptr<EndpointState> take_out(Endpoint& endpoint);
  void put_in(std::unique_ptr<EndpointState> endpoint);
  /// Makes progress, and runs handlers: of how many messages, those that came back too.
  unsigned poll(Lock& lock);
  /// Sleeps until something has come, at most until then; without the lock meanwhile.
  void pause(Lock& lock, base::Instant deadline);
  /// There is something new to look after; with the lock.
  void rouse();
  bool has_message() const;
  std::size_t outstanding() const;
  void run();
  bool watch(const EndpointState& endpoint, bool is_watched);

  Bundle& face;
  std::shared_ptr<DomainState> domain;
  mutable BundleLock lock;
  std::timed_mutex waiting;
  bool is_in_long_sleep = false;  // who holds `waiting` does not look after the time of requests; under the lock
  std::vector<std::unique_ptr<EndpointState>> endpoints;
  unsigned returned = 0;     // requests given to handler 0 without a message from the other side, under the lock
  base::ClockPace pace{15};  // of polls that find nothing; under the lock
  std::size_t first = 0;     // whose turn it is to be served first
  base::FileDescriptor watch_descriptor;  // epoll over the endpoints' descriptors
  base::Thread thread;                    // interrupt mode
  std::atomic<bool> is_stopping{false};
};

inline bool EndpointState::is_inherited() const {
  return bundle->is_inherited();
}

}  // namespace fairlead::am
