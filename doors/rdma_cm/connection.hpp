#pragma once
// The life of one id, as the kernel's connection manager has it; no I/O, the time is an argument. Each call says what
// to send and what to tell the program; both are at most one thing.
//
//   idle -bind-> bound -listen-> listening
//     \------------\-resolve-> addressed -resolve-> routed
//   initiator: routed -connect-> requesting -REP-> replied_to -accept, RTU-> connected
//   responder: (REQ) requested -accept, REP-> replied -RTU-> connected
//   connected -disconnect, DREQ-> leaving -DREP-> resting -a while-> over
//   connected -DREQ-> left -disconnect, DREP-> resting -a while-> over
//
// Datagrams (SIDR) have a request and one answer: requesting or requested, then over. Messages are reliable, so the
// only timers are those of waiting for a program at the other end, and the rest (time-wait) that gives late packets the
// time to die.

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
  multicast_join = 12,
  timewait_exit = 15,
};

/// Why a request was rejected; the numbers are InfiniBand's.
enum class Reason : std::uint8_t {
  timeout = 4,
  invalid_comm_id = 6,
  invalid_service_id = 8,  // nobody listens
  consumer_defined = 28,   // the program said so, or is gone
  vendor_option_not_supported = 35,
};

/// The answers to a SIDR request.
enum class SidrStatus : std::uint8_t { success = 0, unsupported = 1, reject = 2 };

/// What the program is told. `status` is an errno below 0, or a reason above.
struct Told {
  Event event = Event::addr_resolved;
  int status = 0;
  Terms terms;  // of the peer, from our point of view: responder_resources is what we are to serve
  PrivateData data;
};

struct Step {
  int error = 0;  // errno: refused, nothing has changed
  std::optional<Message> send{};
  std::optional<Told> tell{};
  bool fails_pair = false;  // the peer is gone, and the program does nothing: its queue pair shall fail
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
  static constexpr Duration kAnswerAtMost = std::chrono::seconds(120);  // of the peer's program to a request
  static constexpr Duration kReadyAtMost = std::chrono::seconds(60);    // from our reply to the initiator's RTU
  static constexpr Duration kLeaveAtMost = std::chrono::seconds(16);    // of the peer's program to our DREQ
  static constexpr Duration kRest = std::chrono::milliseconds(500);
  /// Of a program whose peer is gone, to disconnect; longer than the time after which its own requests fail (8.6 s).
  static constexpr Duration kHeedsAtMost = std::chrono::seconds(10);
  static constexpr Duration kBusyPause = std::chrono::milliseconds(20);
  /// A request that finds nobody is sent again for so long: programs end a listener and make it anew, perftest between
  /// two connections, which takes us longer than the kernel.
  static constexpr Duration kNobodyAtMost = std::chrono::milliseconds(200);

  /// `name` is random and not 0; `psn` has 24 bits.
  Connection(std::uint64_t name, std::uint32_t psn, bool is_datagram)
      : name_(name), psn_(psn), is_datagram_(is_datagram) {}
  /// The responder's side of a request.
  static Connection answering(const Message& request, std::uint64_t name, std::uint32_t psn);
  /// What the listener's program is told of it.
  static Told request_told(const Message& request);

  // ---- what the program asks for
  Step bind();
  /// `failure`: an errno if there is no way to the address. The same for the route.
  Step resolve_address(int failure);
  Step resolve_route(int failure);
  Step listen();
  /// `request` has what the id knows: port space, ports, addresses.
  Step connect(Message request, const Terms& terms, const PrivateData& data, Instant now);
  /// None: the initiator's second half, after a reply.
  Step accept(const Terms* terms, const PrivateData& data, Instant now);
  Step reject(Reason reason, const PrivateData& data);
  Step disconnect(Instant now);
  /// The program has seen data before RTU came.
  Step establish();
  /// The id goes: what the peer has to know.
  std::optional<Message> destroy();

  // ---- what happens
  Step take(const Message& message, Instant now);
  /// A message of ours did not arrive.
  Step fail(Kind kind, Status why, Instant now);
  /// The peer's process is gone, or cannot be heard.
  Step lose(Status why, Instant now);
  Step expire(Instant now);
  Instant due() const { return due_ < again_ ? due_ : again_; }

  State state() const { return state_; }
  std::uint64_t name() const { return name_; }
  std::uint64_t peer_name() const { return peer_name_; }
  std::uint32_t psn() const { return psn_; }
  std::uint32_t peer_psn() const { return peer_psn_; }
  const Terms& peer_terms() const { return peer_terms_; }
  bool is_datagram() const { return is_datagram_; }
  /// Whether it would wait in vain if the peer's process were gone.
  bool needs_peer() const;
  /// Asks the peer whether it lives, and still has this connection. A peer that could not hear us may have given it up.
  Message ask() const { return state_ == State::connected ? say(Kind::alive) : Message{}; }
  /// Whether a peer that asks for it waits in vain.
  bool is_over() const { return state_ >= State::resting; }
  /// Whether connect or accept has begun, or a request came.
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
  Step take_disconnect(Instant now);
  Step take_reject(const Message& message);
  static Terms as_we_see(const Message& message);

  std::uint64_t name_, peer_name_ = 0;
  std::uint32_t psn_, peer_psn_ = 0;
  bool is_datagram_;
  bool is_lost_ = false;  // the peer is, and the program has not disconnected
  State state_ = State::idle;
  Instant due_ = kNever;    // of the state
  Instant again_ = kNever;  // the request is sent anew
  Message request_;         // ours, while we wait for its answer
  Terms peer_terms_;        // from our point of view
};

}  // namespace fairlead::rdma_cm
