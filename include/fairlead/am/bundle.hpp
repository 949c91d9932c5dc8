#pragma once
// The unit of polling and waiting: some endpoints of one process.

#include <memory>

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
  /// Frees its endpoints too, all of them.
  ~Bundle();
  Bundle(const Bundle&) = delete;
  Bundle& operator=(const Bundle&) = delete;

  /// no_memory: kEndpointsMax are there, or the engine has no port left.
  [[nodiscard]] Result<Endpoint*> add_endpoint();
  /// invalid: it is not of this bundle.
  Status free_endpoint(Endpoint& endpoint);
  /// The endpoint keeps its name, tables, segment and tag. invalid: it is not of this bundle.
  Status move_endpoint(Endpoint& endpoint, Bundle& to);

  /// Makes progress and runs the handlers of what has arrived, at most DomainSettings::poll_max. bad_state in a
  /// handler.
  Status poll();
  /// Waits until a message is there for one of the endpoints, a request has come back, or the deadline; then polls
  /// once. Looks for a moment, then sleeps; without outstanding requests nothing wakes it but a message. timed_out;
  /// bad_state in a handler.
  Status wait(Instant deadline = kNever);
  bool has_message() const;

  /// For foreign epoll loops: readable when a message is there and arm() was called after the last poll. Nothing is
  /// polled while it sleeps. -1: no descriptor could be had.
  int descriptor();
  /// False if a message is there already (do not sleep).
  bool arm();

  /// Handlers run in a thread of the bundle as messages come, while the application computes, until stop_interrupts().
  /// From here on the bundle is parallel.
  Status start_interrupts();
  void stop_interrupts();

 private:
  friend class Endpoint;
  friend struct BundleState;
  friend struct EndpointState;
  std::unique_ptr<BundleState> state_;
};

}  // namespace fairlead::am
