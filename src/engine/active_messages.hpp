#pragma once
// Active messages between ports, of this engine or another: sent through the transports, or handed over where both ends
// are here; received into the port's arrivals, or answered why not. A message's right to be taken is judged once, in
// accept(), before any of its bytes is placed. The files: active_messages (sending, peers), active_receive.

#include <cstdint>
#include <span>

#include "base/slab.hpp"
#include "engine/active.hpp"
#include "engine/active_counters.hpp"
#include "engine/peer_losses.hpp"
#include "engine/ports.hpp"
#include "transport/client.hpp"
#include "transport/retry_queue.hpp"
#include "transport/transports.hpp"

namespace fairlead::engine {

class ActiveMessages {
 public:
  struct Bounds {
    std::uint32_t arrivals_max = 0;  // of one port
    std::uint64_t memory_max = 0;    // bytes of buffers of one port
    std::uint32_t packed_max = 0;    // bytes of a message that lie in its arrival
    std::uint32_t filling_max = 0;   // messages that arrive in chunks at a time
    base::Duration ask_after{};      // silence of a peer that owes an answer
  };

  /// `transports` is null if this engine reaches only itself.
  ActiveMessages(Ports& ports, transport::Transports* transports, const base::SocketAddress& address,
                 const Bounds& bounds)
      : ports_(ports), transports_(transports), address_(address), bounds_(bounds), fillings_(bounds.filling_max) {}

  /// From now on the port takes active messages. `secret`: what answers to its own must carry.
  Status activate(PortHandle port, std::uint64_t secret);
  /// The port is going: who asked is told that nobody will answer.
  void close(std::uint32_t port_slot, base::Instant now);

  /// Before a message is sent from an active port: invalid, or ok; then a request is open for its answer, which may be
  /// here before send() returns. If it is not sent the face sends it again, or forgets it.
  Status begin(Port& port, const ActiveMessage& message);
  void send_here(const Port& port, const ActiveMessage& message, base::Instant now);
  /// `cookie`: of the outcome, if there is to be one; else the message is copied.
  Status send(link::PeerHandle peer, const Port& port, const ActiveMessage& message, std::uint64_t cookie,
              base::Instant now, link::Reference* reference = nullptr);
  /// The answer is waited for no longer; also of one that has begun to come.
  void forget_request(PortHandle port, std::uint64_t name);

  /// Conversations with other engines that ended.
  const PeerLosses& losses() const { return losses_; }
  Conversation conversation(link::PeerHandle peer) const { return {way_of(peer), losses_.count()}; }
  void ask_peer(const base::SocketAddress& address, base::Instant now);

  // As a client (transport/client.hpp) -------------------------------------------------------------------------------

  void deliver(const link::Delivery& delivery, base::Instant now);
  void end_arrival(std::uint64_t target, Status status);
  void end_peer(link::PeerHandle peer, Status status, base::Instant now, bool has_left = false);
  /// The peer is not lost, but forgotten: nothing was waited for.
  void drop_answers(link::PeerHandle peer);
  /// Whether an answer has left that had waited for room.
  bool progress(base::Instant now);
  /// Answers that wait for room are tried again in each pass.
  bool is_owing() const { return !answers_.is_empty(); }

  /// As Engine::check().
  void check();

  const ActiveCounters& counters() const { return counters_; }
  std::uint32_t filling() const { return fillings_.used(); }
  std::size_t deferred() const { return answers_.size(); }

 private:
  static constexpr std::uint32_t kNone = Ports::kNone;

  /// A message that arrives in chunks. Named in the transports' target word by slot and generation.
  struct Filling {
    std::uint32_t port = kNone;  // slot
    Arrival* arrival = nullptr;  // null once the port is closed, or the answer is not wanted any more
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
  transport::RetryQueue<wire::Envelope> answers_;  // that wait for room
  PeerLosses losses_;
  ActiveCounters counters_;
};

}  // namespace fairlead::engine
