#pragma once
// A port of an application at the host engine: its events, and requests that wait until the engine accepts them.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>

#include "embedded/embedded_core.hpp"
#include "host/event_room.hpp"
#include "host/layout.hpp"
#include "host/one_segment.hpp"
#include "host/served_active.hpp"
#include "host/served_keys.hpp"
#include "queue/producer.hpp"
#include "shm/socket.hpp"

namespace fairlead::host {

/// A request that the engine refused with `again`. `serial` identifies its operation and is never reused; the
/// application may reuse the operation's name.
struct DeferredRequest {
  Request request;
  std::uint64_t serial = 0;
};

class ApplicationPort {
 public:
  /// `events` is memory of the application; this function checks it. `room` outlives this object.
  static Result<std::unique_ptr<ApplicationPort>> open(embedded::EmbeddedCore& core, engine::PortHandle handle,
                                                       std::span<std::byte> events, PortPage& page, EventRoom& room);
  ApplicationPort(const ApplicationPort&) = delete;
  ApplicationPort& operator=(const ApplicationPort&) = delete;

  /// Continues where the previous program stopped. If the application has damaged its queue since then, the port has no
  /// queue and takes no events: only that application may suffer.
  static std::unique_ptr<ApplicationPort> resume(embedded::EmbeddedCore& core, engine::PortHandle handle,
                                                 std::span<std::byte> events, PortPage& page, EventRoom& room,
                                                 const queue::Producer::Position& position);
  bool has_queue() const noexcept { return events_.has_value(); }
  queue::Producer::Position position() const {
    return events_ ? events_->position() : queue::Producer::Position{.is_refused = true};
  }

  engine::PortHandle handle() const noexcept { return handle_; }
  const shm::Socket& socket() const noexcept { return socket_; }
  void connect(shm::Socket socket) { socket_ = std::move(socket); }

  struct Submitted {
    engine::OperationHandle operation;
    bool is_done = false;  // no completion follows, and no event is reserved
  };
  /// Reserves events at the engine. Returns `no_memory` beyond kEventsMax, and beyond the room of all ports.
  Status reserve(std::uint32_t events);
  void release(std::uint32_t events);
  std::uint32_t reserved() const noexcept { return reserved_.reserved(); }
  /// Submits a request, and reserves `events` events. The caller has checked its memory. The engine's cookie is the
  /// index in the operation's name.
  Status submit(const Request& request, std::span<const iovec> memory, std::uint32_t events, Submitted& submitted);

  /// Puts one more key on the shelf. Call only if there is room.
  Status give_key();
  /// Takes back a key that was not used.
  void take_back_key() { core_.cancel(handle_, keys.take()); }

  /// Returns false if there is no room: the application has more events than it reserved, or damaged its queue. An
  /// event that is no news does not wake it.
  bool produce(const Event& event, bool is_news = true);
  /// Wakes the sleeping application if there were events since the last call.
  void tell();
  /// Publishes the engine's count of messages that found no buffer.
  void show_drops();
  /// Makes the next tell() wake the application.
  void note_news() noexcept { has_news_ = true; }
  /// Sends a nudge back to the application, which interrupts its own sleeping thread in this way.
  void nudge() const noexcept { socket_.nudge(); }

  std::unique_ptr<ServedActive> active;  // null: takes no active messages
  std::deque<DeferredRequest> deferred;
  ServedKeys keys;            // for its exposures
  std::uint32_t pending = 0;  // operations
  bool is_closing = false;    // events are discarded
  bool is_closed = false;     // closed at the engine; only the connection is left
  bool wants_answer = false;  // the close call awaits an answer

 private:
  Status pass_on(const Request& request, std::span<const iovec> memory, Submitted& submitted);
  ApplicationPort(embedded::EmbeddedCore& core, engine::PortHandle handle, std::span<std::byte> events, PortPage& page,
                  EventRoom& room)
      : core_(core), handle_(handle), page_(page), segment_(events), reserved_(room) {}

  embedded::EmbeddedCore& core_;
  const engine::PortHandle handle_;
  PortPage& page_;
  OneSegment segment_;
  std::optional<queue::Producer> events_;
  shm::Socket socket_;
  std::uint64_t dropped_ = 0;
  EventShare reserved_;
  bool has_news_ = false;
};

}  // namespace fairlead::host
