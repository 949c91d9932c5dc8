#pragma once
// Posted buffers, and their matching with messages: a message takes the first buffer of the port that has room for it
// (LNet's rule). A port that takes spares (spare_receives.hpp) posts one if no buffer has room, and one for each full
// buffer.
//
// A message that arrives complete gets its event at once. One that arrives in chunks gets a placement. Later messages
// in the same buffer wait for it, because events come in the order of offsets.

#include <cstdint>
#include <span>

#include "engine/core.hpp"
#include "engine/message_context.hpp"

namespace fairlead::engine {

class Receives {
 public:
  static constexpr std::uint32_t kNone = Operations::kNone;

  /// The buffer for a message. Null: the message was dropped and counted.
  struct Match {
    Operation* operation = nullptr;
    std::uint32_t slot = kNone;  // of the operation
    explicit operator bool() const { return operation != nullptr; }
  };

  explicit Receives(MessageContext& context)
      : context_(context), operations_max_(context.options.get(Option::operations_max)) {}

  Status post(PortHandle port, const Receive& receive, OperationHandle& operation);
  /// Makes the port post spares according to the plan.
  void set_spares(PortHandle port, const SparePlan& plan);
  SpareCounts spare_counts(PortHandle port);
  /// Finds a buffer for a message to that port. A message `in_chunks` needs a placement.
  Match match(std::uint32_t port_number, std::uint64_t size, bool in_chunks);
  /// Assigns the next bytes of the buffer to the message and returns their offset. Retires the buffer if no message may
  /// follow.
  std::uint64_t take_room(const Match& match, std::uint64_t size);
  /// Completes a message that is in the buffer.
  void complete(const Match& match, std::uint64_t offset, std::uint64_t length, const base::SocketAddress& engine,
                std::uint32_t source_port, base::Instant now);
  /// Copies and completes a message that has matched.
  void put(const Match& match, const base::SocketAddress& engine, std::uint32_t source_port,
           std::span<const std::byte> bytes, base::Instant now);
  /// Does all of the above for a message that arrived complete, by any transport. Returns whether a buffer took it.
  bool take(const base::SocketAddress& engine, std::uint32_t source_port, std::uint32_t port_number,
            std::span<const std::byte> bytes, base::Instant now);
  /// Stops matching messages to this buffer.
  void retire(std::uint32_t slot);

  /// Creates the placement of a message whose first chunk has arrived.
  std::uint32_t begin_placement(std::uint32_t slot, std::uint64_t offset, std::uint64_t size, const RemotePort& source);
  /// Ends a placement, because it is complete or its sender is lost.
  void end_placement(std::uint32_t placement, Status status, base::Instant now);
  /// The buffer ends when messages that have begun to arrive are complete.
  void cancel(std::uint32_t slot, base::Instant now);
  /// From now on, discards messages that are still arriving in the buffer. Complete ones are reported.
  void abandon(std::uint32_t slot, base::Instant now);

 private:
  static constexpr std::uint32_t kWalkMax = 4096;

  [[gnu::noinline]] Match find(std::uint32_t port_number, std::uint64_t size);
  Match drop(std::uint32_t port_slot);
  std::uint32_t find_room(const Port& port, std::uint64_t size);
  std::uint32_t post_spare(Port& port, std::uint32_t port_slot);
  void fill_up(Port& port, std::uint32_t port_slot);
  void wait(std::uint32_t slot, std::uint64_t offset, std::uint64_t length, const RemotePort& source);
  void append(std::uint32_t slot, std::uint32_t placement);
  bool take_first(std::uint32_t slot, Status& status, base::Instant now);
  void finish(std::uint32_t slot, base::Instant now);

  MessageContext& context_;
  std::uint64_t operations_max_;
  // Messages tend to come in runs. The last match also serves the next message to the same port while it is that port's
  // first buffer.
  Match last_;
  std::uint32_t last_number_ = 0;
};

// Inline, because receiving short messages is a hot path.

[[gnu::always_inline]] inline Receives::Match Receives::match(std::uint32_t port_number, std::uint64_t size,
                                                              bool in_chunks) {
  const bool is_run = last_ && port_number == last_number_ && size <= last_.operation->length - last_.operation->fill;
  const Match match = is_run ? last_ : find(port_number, size);
  if (!match) [[unlikely]]
    return match;
  // Messages that wait behind an unfinished one may use at most half of the placements, because peers decide how many
  // there are.
  const bool needs_placement = in_chunks || match.operation->first_placement != kNone;
  if (needs_placement && (context_.placements.used() >= operations_max_ || !context_.placements.has_room()))
      [[unlikely]]
    return drop(match.operation->port);
  return match;
}

[[gnu::always_inline]] inline std::uint64_t Receives::take_room(const Match& match, std::uint64_t size) {
  Operation& operation = *match.operation;
  const std::uint64_t offset = operation.fill, left = operation.length - offset - size;
  operation.fill = offset + size;
  if (--operation.messages_left == 0 || left < operation.size_min) [[unlikely]]
    retire(match.slot);
  return offset;
}

[[gnu::always_inline]] inline void Receives::complete(const Match& match, std::uint64_t offset, std::uint64_t length,
                                                      const base::SocketAddress& engine, std::uint32_t source_port,
                                                      base::Instant now) {
  const Operation& operation = *match.operation;
  if (operation.first_placement != kNone) [[unlikely]]
    return wait(match.slot, offset, length, {engine, source_port});
  context_.ports.put_event(operation.port, [&](void* place) {
    new (place) Completion{.cookie = operation.cookie,
                           .length = length,
                           .offset = offset,
                           .time_ns = now.time_since_epoch().count(),
                           .source = {engine, source_port},
                           .status = Status::ok,
                           .is_final = operation.is_busy};
  });
  if (operation.is_busy) [[unlikely]]
    context_.operations.release(match.slot);
}

[[gnu::always_inline]] inline void Receives::put(const Match& match, const base::SocketAddress& engine,
                                                 std::uint32_t source_port, std::span<const std::byte> bytes,
                                                 base::Instant now) {
  const std::uint64_t offset = take_room(match, bytes.size());
  match.operation->permit(offset, bytes.size()).write(0, bytes);
  complete(match, offset, bytes.size(), engine, source_port, now);
}

[[gnu::always_inline]] inline bool Receives::take(const base::SocketAddress& engine, std::uint32_t source_port,
                                                  std::uint32_t port_number, std::span<const std::byte> bytes,
                                                  base::Instant now) {
  const Match match = this->match(port_number, bytes.size(), false);
  if (!match) [[unlikely]]
    return false;
  ++context_.counters.messages_received;
  put(match, engine, source_port, bytes, now);
  return true;
}

}  // namespace fairlead::engine
