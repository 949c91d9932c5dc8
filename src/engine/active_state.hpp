#pragma once
// The state of active messages for the next program in this process (engine_state.hpp). Segments are not part of it:
// their owners supply them again (ActiveHandover::give_segment).

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/active_port.hpp"
#include "engine/left_ports.hpp"
#include "engine/peer_losses.hpp"
#include "link/link.hpp"
#include "wire/envelope.hpp"

namespace fairlead::engine {

/// An arrival that its owner has not taken, or that has come in part.
struct ArrivalState {
  ActiveKind kind = ActiveKind::request;
  Status status = Status::ok;
  bool is_placed = false;
  std::uint16_t word = 0, head = 0;
  std::uint64_t reply_access = 0;
  RemotePort source;
  std::uint64_t access = 0, name = 0, offset = 0, data_length = 0;
  std::vector<std::byte> bytes;  // the head, and the data unless it is placed
};

/// A message that arrives in chunks.
struct FillingState {
  std::uint32_t slot = 0, port = 0;     // slots of the filling and of the port
  std::optional<ArrivalState> arrival;  // none if nobody wants it any more
};

struct ActivePortState {
  std::uint32_t slot = 0;
  std::uint64_t secret = 0;
  ActivePort::Bounds bounds;
  AccessRule rule;
  Status gone = Status::ok;
  std::vector<OpenRequests::Request> requests;
};

/// The notice of a refusal that had no room.
struct ActiveAnswerState {
  link::PeerHandle peer;
  wire::Envelope envelope;
};

struct ActiveState {
  std::vector<ActivePortState> ports;
  std::vector<std::uint64_t> filling_names;  // base::Slab::names()
  std::vector<FillingState> fillings;
  std::vector<ActiveAnswerState> answers;
  std::uint64_t losses_counted = 0;
  std::vector<PeerLoss> losses;       // the latest, in order
  std::vector<LeftPorts::Port> left;  // in order
};

template <typename Archive>
void fields(Archive& archive, ArrivalState& arrival) {
  archive(arrival.kind, arrival.status, arrival.is_placed, arrival.word, arrival.head, arrival.reply_access,
          arrival.source, arrival.access, arrival.name, arrival.offset, arrival.data_length, arrival.bytes);
}
template <typename Archive>
void fields(Archive& archive, FillingState& filling) {
  archive(filling.slot, filling.port, filling.arrival);
}
template <typename Archive>
void fields(Archive& archive, OpenRequests::Request& request) {
  archive(request.name, request.to);
}
template <typename Archive>
void fields(Archive& archive, ActivePortState& port) {
  archive(port.slot, port.secret, port.bounds.arrivals_max, port.bounds.memory_max, port.bounds.packed_max,
          port.rule.kind, port.rule.access, port.gone, port.requests);
}
template <typename Archive>
void fields(Archive& archive, ActiveAnswerState& answer) {
  archive(answer.peer.slot, answer.peer.generation, answer.envelope);
}
template <typename Archive>
void fields(Archive& archive, PeerLoss& loss) {
  archive(loss.engine, loss.status, loss.has_left, loss.way, loss.mark);
}
template <typename Archive>
void fields(Archive& archive, LeftPorts::Port& port) {
  archive(port.number, port.why);
}
template <typename Archive>
void fields(Archive& archive, ActiveState& active) {
  archive(active.ports, active.filling_names, active.fillings, active.answers, active.losses_counted, active.losses,
          active.left);
}

}  // namespace fairlead::engine
