#pragma once
// The other threads of a host engine: each runs a Service of its own, which has no listener. The Service that owns this
// accepts connections, and passes on first calls.
//
// Not thread-safe, except for put() and stop().

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <fairlead/error.hpp>

#include "base/thread.hpp"
#include "host/mailbox.hpp"

namespace fairlead::host {

class Service;

class Workers {
 public:
  Workers();
  /// Ends the threads, and then the services.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void add(std::unique_ptr<Service> service);
  /// Service of thread `number` (from 1 on).
  Service& service(std::uint32_t number) const { return *workers_[number - 1].service; }
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const Worker& worker : workers_) visit(*worker.service);
  }

  /// Starts the threads that do not run.
  Result<> start();
  /// Ends the threads; the services stay as they are, and start() continues them.
  void pause();
  /// Asks all services to end. Safe in a signal handler.
  void stop() noexcept;
  /// Waits until all services have ended after stop().
  void join();
  /// Passes a first call to thread `number`. Returns false if it has too many.
  bool put(std::uint32_t number, FirstCall& call);

 private:
  struct Worker {
    std::unique_ptr<Service> service;
    base::Thread thread;
  };
  std::vector<Worker> workers_;
};

}  // namespace fairlead::host
