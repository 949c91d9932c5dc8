#pragma once
// The active messages of an application's port at the host engine: hands over what arrives, and passes on what the
// application sends.
//
// The host engine keeps of each request that it has handed over what its answer needs, and gives the application only a
// name for that. So an application can answer each request once and no other. Requests that it has not answered when
// the port closes are returned.
//
// If the application has no room, arrivals wait here or at the engine, which bounds them. The application wakes the
// host engine when there is room again.

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/slab.hpp"
#include "embedded/embedded_core.hpp"
#include "host/active_layout.hpp"
#include "host/one_segment.hpp"
#include "host/served_active_state.hpp"
#include "queue/producer.hpp"

namespace fairlead::host {

/// What all active ports of an application have together.
struct ActiveRoom {
  std::uint32_t ports = 0;
  std::uint32_t request_places = 0;
};

class ServedActive {
 public:
  static constexpr std::uint32_t kArrivalsInTurn = 64;
  static constexpr std::uint64_t kHereMost = 16ULL << 20;  // bytes of a message within the engine: copied in one go
  /// The bounds of the port at the engine, in memory of this process.
  static constexpr engine::ActivePort::Bounds kBounds{.arrivals_max = 512, .memory_max = 2 << 20, .packed_max = 1024};

  /// Activates the port. `memory` is the application's, with ActiveLayout::bytes() bytes; this function checks the
  /// queue in it. `room` outlives this object.
  static Result<std::unique_ptr<ServedActive>> open(embedded::EmbeddedActive& engine, engine::PortHandle port,
                                                    const base::SocketAddress& address, std::byte* memory,
                                                    ActiveRoom& room);
  /// Returns the state for the next program. `head` is where the application's memory begins. Makes no call to the
  /// engine that needs its lock.
  ServedActiveState save(const std::byte* head);
  /// Continues where the previous program stopped. The engine has restored the port. Returns an error if the state
  /// contradicts itself. If the application has damaged its queue since then, fault() says so.
  static Result<std::unique_ptr<ServedActive>> resume(embedded::EmbeddedActive& engine, engine::PortHandle port,
                                                      const base::SocketAddress& address, std::byte* head,
                                                      ActiveRoom& room, const ServedActiveState& state);
  ~ServedActive();
  ServedActive(const ServedActive&) = delete;
  ServedActive& operator=(const ServedActive&) = delete;

  /// Passes a message to the engine. Returns `again` if the caller should retry later. `is_done` is set if no
  /// completion will follow.
  Status send(const Request& request, std::span<const iovec> memory, std::uint64_t cookie, bool& is_done);
  void set_access(const engine::AccessRule& rule) { engine_.set_access(port_, rule); }
  /// Placed messages go there from now on. `number` marks them.
  void set_segment(const engine::Segment& segment, std::uint64_t number);
  void forget(std::uint64_t name) { engine_.forget_request(port_, name); }
  void leave();

  /// Hands over arrivals, at most kArrivalsInTurn. Returns true if there were any.
  bool give();
  /// Prepares for the host engine's sleep. Returns true, and is not prepared, if an arrival could be handed over.
  bool park();
  void unpark() { memory_.page().stalled.sleeping.exchange(0, std::memory_order_acq_rel); }
  /// Call before the port is closed. Returns all requests that have no answer. `is_owner_gone` says that the process
  /// has ended.
  void close(bool is_owner_gone);

  /// Returns the bytes handed over since the last call.
  std::uint64_t take_given_bytes() { return std::exchange(given_bytes_, 0); }

  /// Returns why the application must be detached; empty if it need not.
  std::string_view fault() const noexcept { return fault_; }

 private:
  /// An arrival that could not be handed over yet.
  struct Waiting {
    engine::Arrival* arrival = nullptr;
    std::uint64_t segment = 0;
  };

  ServedActive(embedded::EmbeddedActive& engine, engine::PortHandle port, const base::SocketAddress& address,
               std::byte* memory, ActiveRoom& room);
  Result<> restore(const ServedActiveState& state, const engine::Segment& segment);
  Status send_request(const engine::ActiveMessage& message);
  Status send_answer(engine::ActiveMessage message);
  bool has_place(std::uint64_t name);
  void take_all();
  void refuse(const engine::Arrival& arrival, Status status);
  bool give(const engine::Arrival& arrival, std::uint64_t segment);
  std::optional<std::uint8_t> take_slot();
  engine::UnansweredRequest* find(std::uint64_t answer) {
    return unanswered_.find(static_cast<std::uint32_t>(answer), static_cast<std::uint32_t>(answer >> 32));
  }

  embedded::EmbeddedActive& engine_;
  const engine::PortHandle port_;
  const base::SocketAddress address_;
  const ActiveMemory memory_;
  ActiveRoom& room_;
  std::uint32_t places_ = 0;  // of room_.request_places
  OneSegment queue_memory_;
  std::optional<queue::Producer> arrivals_;
  std::array<std::uint64_t, ActivePage::kSlots / 64> used_slots_{};
  base::Slab<engine::UnansweredRequest> unanswered_{kArrivalsMax};
  std::deque<Waiting> waiting_;
  engine::Segment place_;      // of placed messages
  std::uint64_t segment_ = 0;  // its number
  std::uint64_t given_bytes_ = 0;
  bool has_left_ = false;
  std::string_view fault_;
};

}  // namespace fairlead::host
