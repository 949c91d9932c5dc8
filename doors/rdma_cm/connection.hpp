#pragma once
// The state machine of one id, as in the kernel's connection manager. It does no I/O; the time is an argument. Each
// call returns at most one message to send and one event for the program.
//
//   idle -bind-> bound -listen-> listening
//     \------------\-resolve-> addressed -resolve-> routed
//   initiator: routed -connect-> requesting -REP-> replied_to -accept, RTU-> connected
//   responder: (REQ) requested -accept, REP-> replied -RTU-> connected
//   connected -disconnect, DREQ-> leaving -DREP-> resting -a while-> over
//   connected -DREQ-> left -disconnect, DREP-> resting -a while-> over
//
// Datagrams (SIDR) have one request and one answer: requesting or requested, then over. Messages are reliable. The only
// timers are those that wait for the program at the other end, and the time-wait that lets late packets expire.

#include <cstdint>
#include <optional>

#include <fairlead/error.hpp>
#include <fairlead/time.hpp>

#include "doors/rdma_cm/message.hpp"

namespace fairlead::rdma_cm {

/// The numbers are the kernel's.
enum class Event : std::uint32_t {
  addr_resolved = 0,
  addr_error = 1,
  route_resolved = 2,
  route_error = 3,
  connect_request = 4,
  connect_response = 5,
  connect_error = 6,
  unreachable = 7,
  rejected = 8,
  established = 9,
  disconnected = 10,
  device_removal = 11,
  multicast_join = 12,
  timewait_exit = 15,
};

/// The reason of a rejection; the numbers are InfiniBand's.
enum class Reason : std::uint8_t {
  timeout = 4,
  invalid_comm_id = 6,
  invalid_service_id = 8,  // nobody listens
  consumer_defined = 28,   // the program rejected it or is gone
  vendor_option_not_supported = 35,
};

/// The status in a SIDR answer.
enum class SidrStatus : std::uint8_t { success = 0, unsupported = 1, reject = 2 };

/// An event for the program. `status` is a negative errno, or a positive reason.
struct Told {
  Event event = Event::addr_resolved;
  int status = 0;
  Terms terms;  // the peer's, from our point of view: responder_resources is how many we serve
  PrivateData data;
};

struct Step {
  int error = 0;  // an errno: the call was refused and has changed nothing
  std::optional<Message> send{};
  std::optional<Told> tell{};
  bool has_forgotten = false;  // the peer does not know this connection any more, and probably no other one
  bool fails_pair = false;     // the peer is gone and the program does not react: fail its queue pair
};

enum class State : std::uint8_t {
  idle,
  bound,
  addressed,
  routed,
  listening,
  requesting,
  requested,
  replied_to,
  replied,
  connected,
  leaving,
  left,
  resting,
  over,
};

class Connection {
 public:
  static constexpr Duration kAnswerAtMost = std::chrono::seconds(120);  // for the peer's program to answer a request
  static constexpr Duration kReadyAtMost = std::chrono::seconds(60);    // from our reply to the initiator's RTU
  static constexpr Duration kLeaveAtMost = std::chrono::seconds(16);    // for the peer's program to answer our DREQ
  static constexpr Duration kRest = std::chrono::milliseconds(500);
  /// For a program whose peer is gone to disconnect. Longer than the time after which its own requests fail (8.6 s).
  static constexpr Duration kHeedsAtMost = std::chrono::seconds(10);
  static constexpr Duration kBusyPause = std::chrono::milliseconds(20);
  /// When to repeat a request without an answer: a crowded manager drops answers that say that it is busy. A manager
  /// ignores the repeat of a request that waits for its program.
  static constexpr Duration kUnansweredLeast = std::chrono::seconds(1), kUnansweredMost = std::chrono::seconds(4);
  /// How long to repeat a request that finds no listener. Programs end a listener and create a new one, perftest
  /// between two connections; this takes longer here than in the kernel.
  static constexpr Duration kNobodyAtMost = std::chrono::milliseconds(200);

  /// `name` is random and not 0; `psn` has 24 bits.
  Connection(std::uint64_t name, std::uint32_t psn, bool is_datagram)
      : name_(name), psn_(psn), is_datagram_(is_datagram) {}
  /// Creates the responder's side of a request.
  static Connection answering(const Message& request, std::uint64_t name, std::uint32_t psn);
  /// Returns the event that reports a request to the listener's program.
  static Told request_told(const Message& request);

  // ---- calls of the program
  Step bind();
  /// `failure` is an errno if there is no way to the address, else 0. The same applies to the route.
  Step resolve_address(int failure);
  Step resolve_route(int failure);
  Step listen();
  /// `request` contains what the id knows: port space, ports, addresses.
  Step connect(Message request, const Terms& terms, const PrivateData& data, Instant now);
  /// `terms` is null for the initiator's second half, after a reply.
  Step accept(const Terms* terms, const PrivateData& data, Instant now);
  Step reject(Reason reason, const PrivateData& data);
  Step disconnect(Instant now);
  /// The program has received data before the RTU came.
  Step establish();
  /// The program destroys the id. Returns the message that informs the peer, if one is needed.
  std::optional<Message> destroy();

  // ---- input
  Step take(const Message& message, Instant now);
  /// Handles a message of ours that did not arrive.
  Step fail(Kind kind, Status why, Instant now);
  /// Handles the loss of the peer: its process is gone or silent.
  Step lose(Status why, Instant now);
  /// Handles the loss of our device: its interface was deleted.
  Step lose_device(Instant now);
  Step expire(Instant now);
  Instant due() const { return due_ < again_ ? due_ : again_; }

  State state() const { return state_; }
  std::uint64_t name() const { return name_; }
  std::uint64_t peer_name() const { return peer_name_; }
  std::uint32_t psn() const { return psn_; }
  std::uint32_t peer_psn() const { return peer_psn_; }
  const Terms& peer_terms() const { return peer_terms_; }
  bool is_datagram() const { return is_datagram_; }
  /// Returns whether the connection would wait in vain if the peer's process were gone.
  bool needs_peer() const;
  /// Returns the question whether the peer lives and still has this connection. A peer that could not hear us may have
  /// given it up.
  Message ask() const { return state_ == State::connected ? say(Kind::alive) : Message{}; }
  /// Returns whether a peer that asks for this connection waits in vain.
  bool is_over() const { return state_ >= State::resting; }
  /// Returns whether connect or accept has begun, or a request came.
  bool has_begun() const { return state_ >= State::requesting; }

 private:
  Step tell(Event event, int status = 0) const;
  Step tell(Event event, int status, const Message& message) const;
  Message say(Kind kind) const;
  Message say_reject(Reason reason) const;
  void enter(State state, Instant due = kNever) {
    state_ = state;
    due_ = due;
    again_ = kNever;
  }
  Step take_disconnect(const Message& message, Instant now);
  Step take_reject(const Message& message);
  static Terms as_we_see(const Message& message);

  std::uint64_t name_, peer_name_ = 0;
  std::uint32_t psn_, peer_psn_ = 0;
  bool is_datagram_;
  State state_ = State::idle;
  Instant due_ = kNever;      // the deadline of the state
  Instant again_ = kNever;    // when to send the request again
  Instant heed_by_ = kNever;  // the program was told of the end: when it must have disconnected
  Message request_;           // ours, while it waits for its answer
  Terms peer_terms_;          // from our point of view
};

}  // namespace fairlead::rdma_cm
