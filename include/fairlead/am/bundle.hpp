#pragma once
// A bundle is the unit of polling and waiting: a set of endpoints of one process.

#include <memory>
#include <stop_token>

#include <fairlead/am/domain.hpp>
#include <fairlead/am/endpoint.hpp>
#include <fairlead/error.hpp>
#include <fairlead/time.hpp>

namespace fairlead::am {

struct BundleState;

enum class BundleMode : std::uint8_t { sequential, parallel };

class Bundle {
 public:
  static constexpr std::size_t kEndpointsMax = 256;

  Bundle(const Domain& domain, BundleMode mode);
  /// Also frees all its endpoints.
  ~Bundle();
  Bundle(const Bundle&) = delete;
  Bundle& operator=(const Bundle&) = delete;

  /// no_memory: the bundle has kEndpointsMax endpoints, or the engine has no free port.
  [[nodiscard]] Result<Endpoint*> add_endpoint();
  /// invalid: the endpoint belongs to another bundle.
  [[nodiscard]] Status free_endpoint(Endpoint& endpoint);
  /// The endpoint keeps its name, tables, segment and tag. invalid: it belongs to another bundle.
  [[nodiscard]] Status move_endpoint(Endpoint& endpoint, Bundle& to);

  /// Makes progress, then runs the handlers of arrived messages, at most DomainSettings::poll_max of them. bad_state:
  /// called in a handler.
  Status poll();
  /// Waits until a message for one of the endpoints arrives, a request is returned, or the deadline passes; then polls
  /// once. It spins for a moment, then sleeps. If no requests are outstanding, only a message wakes it. timed_out;
  /// bad_state: called in a handler.
  Status wait(Instant deadline = kNever);
  /// The same, but another thread can end it by a stop request: canceled. That takes up to 100 ms if a third thread
  /// waits in the bundle, else no time.
  Status wait(Instant deadline, const std::stop_token& stop);
  bool has_message() const;

  /// For the program's own epoll loop. The descriptor becomes readable when a message is there and arm() was called
  /// after the last poll. The library does not poll while the program sleeps. -1: the kernel gave no descriptor.
  int descriptor();
  /// False: a message is already there; do not sleep.
  bool arm();

  /// Starts a thread of the bundle that runs handlers as messages arrive, until stop_interrupts(). The bundle becomes
  /// parallel.
  [[nodiscard]] Status start_interrupts();
  void stop_interrupts();

 private:
  friend class Endpoint;
  friend struct BundleState;
  friend struct EndpointState;
  std::unique_ptr<BundleState> state_;
};

}  // namespace fairlead::am
