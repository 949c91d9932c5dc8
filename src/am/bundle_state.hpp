#pragma once
// BundleState is the object behind a Bundle: its endpoints, the lock of a parallel bundle, and the sleeping thread.
//
// Handlers run without the lock, so a parallel bundle runs several at once. The thread that took an arrival owns it. In
// a sequential bundle the lock does nothing. `waiting` admits one thread at a time to sleep in the engine; the others
// wait for it to wake. A thread that removes an endpoint interrupts the sleeper and takes `waiting` first, so nobody
// sleeps on a removed port. While requests are outstanding, the sleeper wakes periodically to check for timeouts and
// lost peers. Otherwise it sleeps until something arrives; the thread that sends the first request wakes it.

#include <atomic>
#include <memory>
#include <mutex>
#include <stop_token>
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
  /// Removes the endpoint while nobody sleeps on it.
  std::unique_ptr<EndpointState> take_out(Endpoint& endpoint);
  void put_in(std::unique_ptr<EndpointState> endpoint);
  /// Makes progress and runs handlers. Returns how many messages it handled, including returned ones.
  unsigned poll(Lock& lock);
  /// The same without progress, for what has arrived.
  unsigned serve(Lock& lock);
  /// Sleeps until something arrives or a stop is requested, at the latest until `deadline`. Releases the lock
  /// meanwhile. Returns true if a port has news.
  bool pause(Lock& lock, base::Instant deadline, const std::stop_token& stop = {});
  /// Wakes the sleeper, because it must take something new into account. The caller holds the lock.
  void rouse();
  bool has_message() const;
  std::size_t outstanding() const;
  void run();
  bool watch(const EndpointState& endpoint, bool is_watched);

  Bundle& face;
  std::shared_ptr<DomainState> domain;
  mutable BundleLock lock;
  std::timed_mutex waiting;
  bool is_in_long_sleep = false;  // the holder of `waiting` does not check request timeouts; guarded by the lock
  std::vector<std::unique_ptr<EndpointState>> endpoints;
  unsigned returned = 0;     // requests given to handler 0 without a message from the peer; guarded by the lock
  base::ClockPace pace{15};  // of polls that find nothing; guarded by the lock
  std::size_t first = 0;     // the endpoint to serve first in the next round
  base::FileDescriptor watch_descriptor;  // epoll over the endpoints' descriptors
  base::Thread thread;                    // of interrupt mode
  std::atomic<bool> is_stopping{false};
};

inline bool EndpointState::is_inherited() const {
  return bundle->is_inherited();
}

}  // namespace fairlead::am
