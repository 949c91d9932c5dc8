#pragma once
// A port that an application has at the host engine: its events on their way to it, and the requests that have to wait
// until the engine takes them.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>

#include "engine/core.hpp"
#include "host/layout.hpp"
#include "host/one_segment.hpp"
#include "queue/producer.hpp"
#include "shm/socket.hpp"

namespace fairlead::host {

/// A request that was asked to come again. `serial` names its operation: unlike the application's name of it, which
/// that may use again, it does not return.
struct DeferredRequest {
  Request request;
  std::uint64_t serial = 0;
};

class ApplicationPort {
 public:
  /// The events' memory is the application's, and checked here.
  static Result<std::unique_ptr<ApplicationPort>> open(engine::Core& core, engine::PortHandle handle,
                                                       std::span<std::byte> events, PortPage& page);

  /// Goes on where the program before this one was.
  static Result<std::unique_ptr<ApplicationPort>> resume(engine::Core& core, engine::PortHandle handle,
                                                         std::span<std::byte> events, PortPage& page,
                                                         const queue::Producer::Position& position);
  queue::Producer::Position position() const { return events_->position(); }

  engine::PortHandle handle() const noexcept { return handle_; }
  const shm::Socket& socket() const noexcept { return socket_; }
  void connect(shm::Socket socket) { socket_ = std::move(socket); }

  /// Passes on a request whose memory has been checked, and which the engine names by the index of its name; with room
  /// for so many events. `key`: of an exposure.
  Status submit(const Request& request, std::span<const iovec> memory, std::uint32_t events,
                engine::OperationHandle& operation, std::uint64_t& key);

  /// False if there is no room: the application has asked for more events than it has reserved, or has damaged its
  /// queue.
  bool produce(const Event& event);
  /// Wakes whoever sleeps, if there were events since the last time.
  void tell();
  /// Messages that found no buffer, as the engine counts them.
  void show_drops();
  /// Of an interrupt: the application's own nudge goes back to it.
  void nudge() const noexcept { socket_.nudge(); }

  std::deque<DeferredRequest> deferred;
  std::uint32_t pending = 0;  // operations
  bool is_closing = false;    // what comes is for nobody
  bool is_closed = false;     // at the engine; only its connection is left
  bool wants_answer = false;  // to its close

 private:
  Status pass_on(const Request& request, std::span<const iovec> memory, engine::OperationHandle& operation,
                 std::uint64_t& key);
  ApplicationPort(engine::Core& core, engine::PortHandle handle, std::span<std::byte> events, PortPage& page)
      : core_(core), handle_(handle), page_(page), segment_(events) {}

  engine::Core& core_;
  const engine::PortHandle handle_;
  PortPage& page_;
  OneSegment segment_;
  std::optional<queue::Producer> events_;
  shm::Socket socket_;
  std::uint64_t dropped_ = 0;
  bool has_news_ = false;
};

}  // namespace fairlead::host
