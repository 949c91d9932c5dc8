#pragma once
// Active messages between ports of this engine or others. They are sent through the transports, or handed over directly
// within the engine. The receiver queues them as arrivals, or answers with a refusal. accept() decides once whether a
// message is accepted, before any of its bytes is placed. Files: active_messages (sending, peers), active_receive.

#include <cstdint>
#include <span>

#include "base/slab.hpp"
#include "engine/active.hpp"
#include "engine/active_counters.hpp"
#include "engine/left_ports.hpp"
#include "engine/peer_losses.hpp"
#include "engine/ports.hpp"
#include "transport/client.hpp"
#include "transport/retry_queue.hpp"
#include "transport/transports.hpp"

namespace fairlead::engine {

/// What is needed to answer a request whose arrival was released.
struct UnansweredRequest {
  RemotePort source;
  std::uint64_t name = 0, reply_access = 0;
  std::uint16_t word = 0;
};

class ActiveMessages {
 public:
  struct Bounds {
    ActivePort::Bounds port;
    std::uint32_t filling_max = 0;  // concurrent messages that arrive in chunks
    base::Duration ask_after{};     // silence of a peer that owes an answer
  };

  /// `transports` is null if this engine reaches only itself.
  ActiveMessages(Ports& ports, transport::Transports* transports, const base::SocketAddress& address,
                 const Bounds& bounds)
      : ports_(ports), transports_(transports), address_(address), bounds_(bounds), fillings_(bounds.filling_max) {}

  /// Makes the port accept active messages. Answers to its own messages must carry `secret`.
  Status activate(PortHandle port, std::uint64_t secret, const ActivePort::Bounds& bounds);
  const ActivePort::Bounds& port_bounds() const { return bounds_.port; }
  /// Closes the port, and tells requesters that nobody will answer.
  void close(std::uint32_t port_slot, base::Instant now);
  /// The owner of the port will end, or has died. From now on, requests are returned with `why`, also when the port is
  /// closed: `canceled` if it announced its end.
  void leave(PortHandle port, Status why);
  /// Returns an arrived request that its owner will not answer.
  void refuse(PortHandle port, const UnansweredRequest& request, Status status, base::Instant now);

  /// Call before sending from an active port. Returns `invalid` or ok. If ok, a request is open for its answer, which
  /// may arrive before send() returns. If sending fails, the AM layer retries or forgets the request.
  Status begin(Port& port, const ActiveMessage& message);
  void send_here(const Port& port, const ActiveMessage& message, base::Instant now);
  /// `cookie` identifies the outcome, if one is wanted; otherwise the message is copied.
  Status send(link::PeerHandle peer, const Port& port, const ActiveMessage& message, std::uint64_t cookie,
              base::Instant now, link::Reference* reference = nullptr);
  /// Ends waiting for an answer, even for one that has partly arrived.
  void forget_request(PortHandle port, std::uint64_t name);

  /// Ended associations with other engines.
  const PeerLosses& losses() const { return losses_; }
  Conversation conversation(link::PeerHandle peer) const { return {way_of(peer), losses_.count()}; }
  void ask_peer(const base::SocketAddress& address, base::Instant now);

  // Interface of a transport client (transport/client.hpp) ------------------------------------------------------------

  void deliver(const link::Delivery& delivery, base::Instant now);
  void end_arrival(std::uint64_t target, Status status);
  void end_peer(link::PeerHandle peer, Status status, base::Instant now, bool has_left = false);
  /// The peer is not lost but forgotten: nothing was awaited.
  void drop_answers(link::PeerHandle peer);
  /// Returns whether an answer was sent that had waited for room.
  bool progress(base::Instant now);
  /// Returns whether answers for the peer wait, or a request that it got is unanswered. For peers of this host.
  bool is_using(link::PeerHandle peer);
  /// Returns whether answers wait for room; each pass retries them.
  bool is_owing() const { return !answers_.is_empty(); }

  /// Checks invariants, as Engine::check() does.
  void check();

  const ActiveCounters& counters() const { return counters_; }
  std::uint32_t filling() const { return fillings_.used(); }
  std::size_t deferred() const { return answers_.size(); }

 private:
  friend class ActiveHandover;

  static constexpr std::uint32_t kNone = Ports::kNone;

  /// A message that is arriving in chunks. The transports' target word names it by slot and generation.
  struct Filling {
    std::uint32_t port = kNone;  // slot
    Arrival* arrival = nullptr;  // null after the port is closed or the answer is no longer wanted
  };

  static std::uint64_t way_of(link::PeerHandle peer) { return (std::uint64_t{peer.slot} + 1) << 32 | peer.generation; }

  // active_messages.cpp
  void answer(const RemotePort& to, const wire::Envelope& envelope, Status status, base::Instant now);
  Status submit_answer(link::PeerHandle peer, const wire::Envelope& envelope, base::Instant now);
  void hand_over(const wire::Envelope& envelope, std::span<const iovec> memory, std::uint64_t length,
                 base::Instant now);

  // active_receive.cpp
  Status judge(ActivePort& port, const wire::Envelope& envelope, const base::SocketAddress& from,
               const link::PeerHandle* peer, std::uint64_t size, base::Instant now);
  std::uint32_t accept(const wire::Envelope& envelope, const base::SocketAddress& from, const link::PeerHandle* peer,
                       std::uint64_t size, Arrival*& arrival, base::Instant now);
  void fill_in_chunks(const link::Delivery& delivery, std::uint32_t port, Arrival& arrival);
  void place_chunk(const link::Delivery& delivery, std::uint32_t filling);
  void end_filling(std::uint32_t filling, Status status);

  Ports& ports_;
  transport::Transports* transports_;
  base::SocketAddress address_;
  Bounds bounds_;
  base::Slab<Filling> fillings_;
  transport::RetryQueue<wire::Envelope> answers_;  // answers that wait for room
  PeerLosses losses_;
  LeftPorts left_;
  ActiveCounters counters_;
};

}  // namespace fairlead::engine
