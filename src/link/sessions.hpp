#pragma once
// Opens, replaces and ends sessions. peer.hpp describes the states, docs/link.md which segments are believed when.

#include <cstddef>
#include <cstdint>

#include "base/socket_address.hpp"
#include "base/time.hpp"
#include "link/acks.hpp"
#include "link/answer_budget.hpp"
#include "link/datagram_sizes.hpp"
#include "link/grants.hpp"
#include "link/greetings.hpp"
#include "link/link_context.hpp"
#include "link/peer_state.hpp"
#include "link/peer_table.hpp"
#include "link/places.hpp"
#include "link/send_queues.hpp"
#include "link/strangers.hpp"

namespace fairlead::link {

class Sessions {
 public:
  /// Other parts that sessions use; all of them outlive this object.
  struct Parts {
    PeerTable& peers;
    Places& places;
    Greetings& greetings;
    Strangers& strangers;
    SendQueues& queues;
    Grants& grants;
    DatagramSizes& sizes;
    Acks& acks;
  };
  Sessions(LinkContext& context, const Parts& parts, std::optional<SealSettings>& sealing, TokenSource& secrets);

  /// Adds a peer at our own request. Returns null if the table is full. Throws if there is no memory, and then nothing
  /// has changed.
  Peer* add_peer(const base::SocketAddress& address, std::uint32_t datagram_size_max, base::Instant now);
  /// Forgets the peer, just before the engine gets the notice. Returns false if the peer is in use again and stays.
  bool forget_unused(PeerHandle handle);

  /// Restores a session of the previous program. One in the clear is with a peer that need not be sealed. Returns false
  /// if the state is inconsistent.
  bool restore(Peer& peer, const SessionState& session, base::Instant now);
  bool restore(Peer& peer, const CandidateState& candidate, base::Instant now);

  void begin_opening(Peer& peer, base::Instant now);
  void on_hello(const base::SocketAddress& from, const wire::Frame& frame, base::Instant now,
                std::uint32_t datagram_size_max);
  void on_hello_retry(const base::SocketAddress& from, const wire::Frame& frame);
  void on_hello_ack(const base::SocketAddress& from, const wire::Frame& frame, base::Instant now);
  void on_hello_refused(const base::SocketAddress& from, const wire::Frame& frame);
  /// Makes the candidate the session, after a segment with its token has arrived.
  void promote(Peer& peer, base::Instant now);
  /// Repeats the hello, or gives up. Returns false if the peer was lost.
  bool greet_again(Peer& peer, base::Instant now);

  /// Handles a reset, which claims that the peer does not know this session. Its sender is not authenticated.
  void on_reset(const base::SocketAddress& from, const wire::Frame& frame, base::Instant now);
  void end_doubt(Peer& peer);
  /// Handles a close: the peer ends the session.
  void on_close(Peer& peer, const wire::Frame& frame, base::Instant now);
  /// Ends the session and everything pending, each with `status`. `is_told`: the engine gets a `lost` notice.
  void lose(Peer& peer, Status status, base::Instant now, bool is_told);
  /// Ends a session whose keys may not be used any more.
  void end_worn_out(Peer& peer, base::Instant now);
  void disconnect(Peer& peer, std::uint8_t flags, std::uint32_t copies, base::Instant now);
  /// Returns false if it is impossible now; the peer will offend again.
  bool expel(Peer& peer, base::Instant now);
  /// As Link::take_leave().
  std::size_t take_leave();
  bool is_leaving() const { return is_leaving_; }

  /// Reserves notices for all that one event can cause: lost peers with their half-received messages, and forgotten
  /// ones. Every caller that may lose a peer checks it first, so that no loss can fail half-way.
  bool has_room_for_news() noexcept;
  const TurnedAway& turned_away() const { return turned_away_; }

 private:
  void make_room(const base::SocketAddress& address, base::Instant now);
  Peer* add_stranger(const base::SocketAddress& address, std::uint32_t datagram_size_max, base::Instant now);
  void on_proven_hello(const base::SocketAddress& from, const wire::Frame& frame, base::Instant now,
                       std::uint32_t datagram_size_max);
  Peer* find_opening(const base::SocketAddress& from, const wire::Header& header) const;
  Peer* peer_of_hello(const base::SocketAddress& from, std::uint32_t datagram_size_max, base::Instant now);
  void offer_candidate(Peer& peer, Peer::Candidate candidate);
  void owe_hello_ack(Peer& peer);
  void establish(Peer& peer, const Half& ours, const wire::Hello& theirs, base::Instant now);
  Diagnosis diagnose(const Peer& peer, Status status, base::Instant now) const;
  void close_session(Peer& peer);
  void say_close(Peer& peer, std::uint8_t flags, std::uint32_t copies);

  // sessions_sealed.cpp
  void on_sealed_hello(const base::SocketAddress& from, const wire::Frame& frame, base::Instant now,
                       std::uint32_t datagram_size_max);
  void on_sealed_hello_ack(Peer& peer, const wire::Frame& frame, base::Instant now);
  bool is_known_greeting(Peer& peer, const seal::PublicKey& ephemeral);
  static bool is_of_our_session(const Peer& peer, const wire::SealedInner& inner);
  bool offer_sealed_candidate(Peer& peer, const wire::Hello& theirs, seal::Handshake& handshake,
                              const seal::PublicKey& ephemeral, base::Instant now);
  void refuse_hello(const base::SocketAddress& from, const wire::Frame& frame, seal::Refused why, base::Instant now);
  /// Returns null if the state is inconsistent.
  std::unique_ptr<SealedSession> restore_sealed(const SealedState& saved) const;
  void doubt(Peer& peer, base::Instant now);
  static SealedClose sealed_close(SealedSession& session, const wire::Header& header);

  LinkContext& context_;
  PeerTable& peers_;
  Places& places_;
  Greetings& greetings_;
  Strangers& strangers_;
  SendQueues& queues_;
  Grants& grants_;
  DatagramSizes& sizes_;
  Acks& acks_;
  std::optional<SealSettings>& sealing_;
  AnswerBudget handshake_budget_;  // limits the work for sealed hellos of strangers
  TurnedAway turned_away_;         // the hello refused last
  bool is_leaving_ = false;        // no session is opened any more
};

}  // namespace fairlead::link
