#pragma once
// Sessions open, are replaced, and end. See peer.hpp for the states and docs/link.md for who believes whom when.

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
  /// What sessions need of the others; all of them outlive it.
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

  /// A place for a peer of ours. Null if all are taken; throws where there is no memory, and nothing has changed.
  Peer* add_peer(const base::SocketAddress& address, std::uint32_t datagram_size_max, base::Instant now);
  /// The engine is about to be told that it is forgotten. False if the peer stays.
  bool forget_unused(PeerHandle handle);

  /// Of the program before this one, with a peer that need not be sealed. False if it contradicts itself.
  bool restore(Peer& peer, const SessionState& session, base::Instant now);
  bool restore(Peer& peer, const CandidateState& candidate, base::Instant now);

  void begin_opening(Peer& peer, base::Instant now);
  void on_hello(const base::SocketAddress& from, const wire::Frame& frame, base::Instant now,
                std::uint32_t datagram_size_max);
  void on_hello_retry(const base::SocketAddress& from, const wire::Frame& frame);
  void on_hello_ack(const base::SocketAddress& from, const wire::Frame& frame, base::Instant now);
  void on_hello_refused(const base::SocketAddress& from, const wire::Frame& frame);
  /// A segment of the candidate's session came.
  void promote(Peer& peer, base::Instant now);
  /// The hello once more, or no more. False if the peer was lost.
  bool greet_again(Peer& peer, base::Instant now);

  /// Somebody says that the peer does not know our session.
  void on_reset(const base::SocketAddress& from, const wire::Frame& frame, base::Instant now);
  void end_doubt(Peer& peer);
  /// The peer ends the session.
  void on_close(Peer& peer, const wire::Frame& frame, base::Instant now);
  /// Ends the session and everything pending, each with `status`.
  void lose(Peer& peer, Status status, base::Instant now, bool is_told);
  /// Its keys may not be used any more.
  void end_worn_out(Peer& peer, base::Instant now);
  void disconnect(Peer& peer, std::uint8_t flags, std::uint32_t copies, base::Instant now);
  /// False if it cannot be now: it will offend again.
  bool expel(Peer& peer, base::Instant now);
  /// As Link::take_leave().
  std::size_t take_leave();
  bool is_leaving() const { return is_leaving_; }

  /// For what one event can cause: so many peers are lost, with all that has come in part, and so many let go. Whoever
  /// may lose a peer asks first, so that no loss can fail half-way.
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
  AnswerBudget handshake_budget_;  // what is computed for those who greet us
  TurnedAway turned_away_;         // the last one
  bool is_leaving_ = false;        // no session is opened any more
};

}  // namespace fairlead::link
