#pragma once
// The link from inside. One struct, its functions by event: link_submit (messages come), link_cancel (they are taken
// back), link_session (sessions open and end), link_strangers (what those hear who are no peers), link_places (who
// gives way), link_receive (a datagram came), link_ack (it acknowledged something), link_send and link_cut (what goes
// out now), link_grants (who may send how much), link_mtu (how long datagrams may be), link_seal and link_rekey (what
// is encrypted, and with which keys), link_take_back (it did not go out), link_expire (timers), link_stall (what does
// not move).
//
// Who is where:
//   control_  peers that are owed a hello or hello_ack      resends_  segments found lost, of all peers
//   ready_    peers with something to send, served in turn  acks_     peers whose ACK is due and found no carrier
//   timers_   peers by the earliest moment that something of theirs may be due; an entry may be early, never late

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "base/fifo.hpp"
#include "link/answer_budget.hpp"
#include "link/cookie_jar.hpp"
#include "link/host_shares.hpp"
#include "link/hotel.hpp"
#include "link/link.hpp"
#include "link/peer.hpp"
#include "link/peer_table.hpp"
#include "link/seal_settings.hpp"
#include "link/token_source.hpp"
#include "wire/record.hpp"
#include "wire/segment.hpp"

namespace fairlead::link {

/// Under which reason a hello that is refused is counted.
Refusal refusal_of(seal::Refused refused);

/// Brings every option into its range.
LinkOptions in_range(LinkOptions options);

struct Link::State {
  State(const LinkOptions& its_options, std::uint64_t its_epoch, std::uint64_t seed,
        std::optional<SealSettings> its_sealing);

  using SealedClose = std::array<std::byte, wire::kSegmentHeaderBytes + wire::kTagBytes>;

  /// A word to somebody who is no peer (any more).
  struct Stray {
    base::SocketAddress to;
    wire::Kind kind = wire::Kind::reset;
    std::uint8_t flags = 0;
    std::uint32_t slot = 0;
    std::uint64_t token = 0;
    std::uint64_t word = 0;  // the cookie of a hello_retry, the reason of a hello_refused
    wire::Sequence ack{};    // of a close: the last word about what has arrived
    std::uint64_t ack_bitmap = 0;
    std::optional<SealedClose> sealed{};  // the whole datagram, for it goes when the session is gone

    wire::Header header() const {
      wire::Header header;
      header.kind = kind;
      header.flags = flags;
      header.slot = slot;
      header.token = token;
      header.ack = ack;
      header.ack_bitmap = ack_bitmap;
      return header;
    }
  };

  // --- link.cpp
  PeerFacts facts(const Peer& peer) const;

  // --- link_submit.cpp
  Status submit(PeerHandle handle, const Outgoing& message, base::Instant now, Reference* reference);
  bool has_memory_for(Peer& peer);
  Status embed(Peer& peer, const Outgoing& message, Reference& reference);
  Status refer(Peer& peer, const Outgoing& message, Reference& reference);
  bool is_eager(const Peer& peer) const;
  std::uint32_t block_size_max(const Peer& peer) const;
  Segment* block_with_space(Peer& peer, Channel channel, std::uint32_t bytes);
  /// One message ends: counted, and told if somebody wants to know.
  void finish(std::uint64_t cookie, bool is_wanted, Status status);

  // --- link_cancel.cpp
  bool cancel(PeerHandle handle, Reference reference, std::uint64_t cookie);
  bool cancel_embedded(Peer& peer, Segment& segment, std::uint64_t cookie);

  // --- link_session.cpp
  void begin_opening(Peer& peer, base::Instant now);
  void on_hello(const base::SocketAddress& from, const wire::Frame& frame, base::Instant now,
                std::uint32_t datagram_size_max);
  void on_proven_hello(const base::SocketAddress& from, const wire::Frame& frame, base::Instant now,
                       std::uint32_t datagram_size_max);
  void on_hello_retry(const base::SocketAddress& from, const wire::Frame& frame);
  Peer* find_opening(const base::SocketAddress& from, const wire::Header& header) const;
  void on_hello_ack(const base::SocketAddress& from, const wire::Frame& frame, base::Instant now);
  void on_reset(const base::SocketAddress& from, const wire::Frame& frame, base::Instant now);
  void promote(Peer& peer, base::Instant now);
  void establish(Peer& peer, const Half& ours, const wire::Hello& theirs, base::Instant now);
  /// Ends the session and everything pending, each with `status`.
  void lose(Peer& peer, Status status, base::Instant now, bool is_told);
  Diagnosis diagnose(const Peer& peer, Status status, base::Instant now) const;
  void abandon_segments(Peer& peer, Status status);
  void disconnect(Peer& peer, std::uint8_t flags, std::uint32_t copies, base::Instant now);
  void expel(Peer& peer, base::Instant now);
  void drop_candidate(Peer& peer);
  void forget(Peer& peer);
  wire::Hello hello_of(const Peer& peer, const Half& ours) const;
  Half new_half();
  Peer* peer_of_hello(const base::SocketAddress& from, std::uint32_t datagram_size_max, base::Instant now);
  Half half_to_offer(const Peer& peer);
  void offer_candidate(Peer& peer, Peer::Candidate candidate);
  void owe_hello_ack(Peer& peer);
  void say_close(Peer& peer, std::uint8_t flags, std::uint32_t copies);
  void close_session(Peer& peer);

  // --- link_receive.cpp
  void receive(const base::SocketAddress& from, std::span<const std::byte> bytes, base::Instant now,
               std::uint32_t datagram_size_max);
  bool has_room_for_news() noexcept;
  void on_segment(const base::SocketAddress& from, const wire::Frame& frame, base::Instant now,
                  std::uint32_t datagram_size_max);
  void on_session_segment(const base::SocketAddress& from, const wire::Frame& frame, base::Instant now);
  void accept_segment(Peer& peer, const wire::Frame& frame, base::Instant now);
  void on_data(Peer& peer, const wire::Frame& frame, base::Instant now);
  bool accept_chunk(Peer& peer, const wire::Record& record);
  void owe_ack(Peer& peer, const wire::Frame& frame, base::Instant now, bool is_duplicate, bool is_at_once);
  std::optional<Delivery> next_delivery();
  void refuse(Refusal refusal) { ++counters.refused[static_cast<std::size_t>(refusal)]; }

  // --- link_places.cpp
  Peer* add_peer(const base::SocketAddress& address, std::uint32_t datagram_size_max, base::Instant now);
  Peer* add_stranger(const base::SocketAddress& address, std::uint32_t datagram_size_max, base::Instant now);
  void sweep(base::Instant now);
  void make_room(const base::SocketAddress& address, base::Instant now);
  static bool is_free_of_us(const Peer& peer);
  static bool is_unused(const Peer& peer, base::Instant now, base::Duration span);
  void let_go(Peer& peer);
  bool forget_unused(PeerHandle handle);
  void take_place(Peer& peer) noexcept;
  void make_room_half_open(const base::SocketAddress& address);

  // --- link_strangers.cpp
  void answer_with_reset(const base::SocketAddress& to, std::uint64_t token, base::Instant now);
  void ask_for_cookie(const base::SocketAddress& from, const wire::Frame& hello, base::Instant now);
  void answer_stranger(const Stray& answer, base::Instant now);
  bool serve_stray(base::Instant now, Train& train);
  std::uint64_t& sent_count(wire::Kind stray);

  // --- link_ack.cpp
  /// False if it acknowledges what was never sent: then nothing of the segment counts.
  bool take_ack(Peer& peer, const wire::Frame& frame, base::Instant now);
  bool is_within_sent(const Peer& peer, const wire::Frame& frame) const;
  void measure(Peer& peer, const wire::Header& header, base::Instant now);
  /// What is known while one ACK is taken.
  struct AckEvidence {
    base::Instant now;
    const wire::Header& header;
    std::uint64_t order_acked = 0;  // before this ACK
  };
  void on_acked(Peer& peer, Segment& segment, const AckEvidence& evidence);
  void learn_order(Peer& peer, const Segment& segment, const AckEvidence& evidence);
  void find_losses(Peer& peer, base::Instant now);
  void resend(Segment& segment, ResendCause cause);

  // --- link_send.cpp
  bool next_train(base::Instant now, std::uint32_t bytes_max, std::uint32_t datagrams_max, Train& train);
  bool serve_control(base::Instant now, Train& train);
  void serve_resends(base::Instant now, std::uint32_t bytes_max, std::uint32_t datagrams_max, Train& train);
  bool serve_peer(Peer& peer, base::Instant now, std::uint32_t bytes_max, std::uint32_t datagrams_max, Train& train);
  void serve_ack(Peer& peer, base::Instant now, Train& train);
  Segment* take_queued(Peer& peer, Channel channel, std::uint32_t size_max);
  /// Its last segment is shorter than the others, or it has no place for the pieces of a further one.
  static bool is_ended(const Train& train) {
    return train.bytes < train.datagrams * train.datagram_size ||
           train.piece_count + Segment::kPiecesMax + 1 > Train::kPiecesInTrain;
  }

  void add_queued(Peer& peer, Channel channel, const wire::Header& base, base::Instant now, std::uint32_t bytes_max,
                  std::uint32_t datagrams_max, Train& train);
  bool add_fresh(Segment& segment, const wire::Header& base, base::Instant now, Train& train);
  void end_train(Peer& peer, base::Instant now, Train& train);
  bool is_alone_ready(const Peer& peer) const;
  bool is_open_for(const Peer& peer, Channel channel, std::uint32_t size) const;
  void transmit(Segment& segment, const wire::Header& base, base::Instant now, Train& train);
  void note_transmission(Segment& segment, base::Instant now);
  void send_control(const base::SocketAddress& to, const wire::Header& header, std::span<const std::byte> payload,
                    Train& train);
  void hang_control(const base::SocketAddress& to, std::size_t size, Train& train);
  wire::Header header_with_ack(const Peer& peer, base::Instant now) const;
  void settle_ack(Peer& peer);
  void count_resend(const Segment& segment, wire::Header& header);
  void make_ready(Peer& peer);
  bool begin_turn(Peer& peer);
  std::uint64_t charge(const Segment& segment) const { return segment.size + options.segment_overhead; }
  std::uint64_t charge(const Train& train) const {
    return train.bytes + std::uint64_t{train.datagrams} * options.segment_overhead;
  }

  // --- link_cut.cpp
  void add_cut(Peer& peer, const wire::Header& base, base::Instant now, std::uint32_t bytes_max,
               std::uint32_t datagrams_max, Train& train);
  Message* choose(Peer& peer, const Train& train, bool is_last, Portion& portion);
  static Portion next_portion(const Peer& peer, const Message& message);
  Segment* cut(Peer& peer, Message& message, const Portion& portion);
  bool is_open_for_two(const Peer& peer, std::uint32_t size) const;

  // --- link_mtu.cpp
  void set_datagram_size(Peer& peer, base::Instant now);
  void follow_mtu(Peer& peer, base::Instant now);
  void serve_probe(Peer& peer, base::Instant now, Train& train);
  void serve_parts(Segment& segment, const wire::Header& base, base::Instant now, std::uint32_t bytes_max,
                   std::uint32_t datagrams_max, Train& train);
  void on_probe(Peer& peer, const wire::Frame& frame);
  void on_probe_answer(Peer& peer, const wire::Frame& frame, base::Instant now);
  void on_part(Peer& peer, const wire::Frame& frame, base::Instant now);

  // --- link_grants.cpp
  void on_bulk(Peer& peer, const wire::Frame& frame, base::Instant now);
  void on_asked(Peer& peer, base::Instant now);
  void take_grant(Peer& peer, std::uint16_t credits, base::Instant now);
  void ask_for_grant(Peer& peer, base::Instant now);
  void give_grants(base::Instant now);
  void end_grant(Peer& peer);
  void leave_grants(Peer& peer);
  void forget_quiet_senders(base::Instant now);
  std::uint16_t credits_for(const Peer& peer) const;
  std::uint64_t turn_bytes() const;
  bool is_crowded() const { return bulk_senders > senders_free; }
  base::Instant grants_deadline() const;

  // --- link_seal.cpp
  bool is_sealed_only(const base::SocketAddress& address, const Peer* peer) const;
  /// Whether our hello to it, and so its answer, have to be sealed.
  bool greets_sealed(const Peer& peer) const {
    return peer.sealed_hello || peer.is_asked_to_seal || is_sealed_only(peer.address, &peer);
  }
  void seal_train(Peer& peer, base::Instant now, Train& train);
  static std::uint32_t bytes_before_tags(const Peer& peer, std::uint32_t bytes_max, std::uint32_t datagrams_max);
  /// What sealing would add to a datagram to a peer without a session.
  std::uint32_t tag_bytes_at_most() const { return sealing ? static_cast<std::uint32_t>(wire::kTagBytes) : 0; }
  void on_sealed_segment(Peer& peer, bool is_of_candidate, const wire::Frame& frame, base::Instant now);
  static SealedClose sealed_close(SealedSession& session, const wire::Header& header);
  bool make_sealed_hello(Peer& peer, const Half& ours, std::uint64_t session);
  bool write_sealed_hello(Peer& peer, const Half& ours, std::uint64_t session);
  void on_sealed_hello(const base::SocketAddress& from, const wire::Frame& frame, base::Instant now,
                       std::uint32_t datagram_size_max);
  /// Who sends our hello back to us: where all have one secret it could be the peer's.
  bool is_own(const wire::Hello& hello) const { return hello.epoch == epoch; }
  bool is_known_greeting(Peer& peer, const seal::PublicKey& ephemeral);
  static bool is_of_our_session(const Peer& peer, const wire::SealedInner& inner);
  bool make_sealed_candidate(Peer& peer, const wire::Hello& theirs, seal::Handshake& handshake,
                             const seal::PublicKey& ephemeral, base::Instant now);
  void on_sealed_hello_ack(Peer& peer, const wire::Frame& frame, base::Instant now);
  void on_hello_refused(const base::SocketAddress& from, const wire::Frame& frame);
  void refuse_hello(const base::SocketAddress& from, const wire::Frame& frame, seal::Refused why, base::Instant now);
  void prove(Peer& peer);
  void doubt(Peer& peer, base::Instant now);
  void end_doubt(Peer& peer);

  // --- link_rekey.cpp
  void watch_keys(Peer& peer, base::Instant now);
  bool are_keys_worn_out(const SealedSession& session, base::Instant now) const;
  bool change_keys(Peer& peer, base::Instant now);
  bool begin_change(Peer& peer);
  void on_rekey(Peer& peer, const wire::Frame& frame, base::Instant now);
  std::optional<Refusal> answer_rekey(Peer& peer, const wire::Frame& frame, base::Instant now);
  void on_rekey_answer(Peer& peer, const wire::Frame& frame, base::Instant now);
  void on_changed(SealedSession& session, base::Instant now);
  void serve_rekey(Peer& peer, base::Instant now, Train& train);

  // --- link_take_back.cpp
  void take_back(const Train& train, base::Instant now);
  void take_back_data(Peer& peer, const Train& train);
  void take_back_parts(Peer& peer, const Train& train);
  void undo_transmission(Segment& segment);

  // --- link_stall.cpp
  void watch_for_stall(Peer& peer, base::Instant now) const;
  bool is_stalled(Peer& peer, base::Instant now) const;

  // --- link_expire.cpp
  void expire(base::Instant now);
  base::Instant due(const Peer& peer) const;
  bool on_timer(Peer& peer, base::Instant now);
  bool greet_again(Peer& peer, base::Instant now);
  void on_silence(Peer& peer, base::Instant now);
  base::Duration probe_after(const Peer& peer) const;
  base::Duration resend_after(const Peer& peer) const;
  base::Duration answer_after(const Peer& peer) const;
  base::Duration ask_again_after(const Peer& peer) const;
  base::Duration hello_after(const Peer& peer) const { return said_after(std::max(peer.hellos, 1U) - 1); }
  /// Before a word of a greeting is said again that was said so many times before.
  base::Duration said_after(std::uint32_t times) const;
  /// Makes sure that the peer is looked at by then.
  void wake_by(Peer& peer, base::Instant at);

  const LinkOptions options;
  const std::uint64_t epoch;
  std::optional<SealSettings> sealing;
  TokenSource tokens;
  TokenSource secrets;  // of our own keys
  CookieJar cookies;
  LinkCounters counters;

  // Owners first: what the lists below link is destroyed after them.
  Hotel hotel;
  ObjectPool<Message> messages;
  PartsRoom parts_room;
  PeerTable peers;
  HostShares<Peer, &Peer::place_hook> places;         // peers, but those about to be forgotten
  HostShares<Peer, &Peer::half_open_hook> half_open;  // peers with a candidate
  std::uint32_t swept = 0;                            // the place looked at last for one long unused

  PeerList<&Peer::control_hook> control;
  PeerList<&Peer::ready_hook> ready;
  PeerList<&Peer::ack_hook> acks;
  SegmentList resends;
  TimerQueue timers;

  // Who sent long messages lately, the latest last; of them those who wait for a grant and who have one.
  PeerList<&Peer::bulk_hook> bulk;
  PeerList<&Peer::grant_hook> grants_waiting, grants_given;
  std::uint32_t bulk_senders = 0, grants_out = 0;
  const std::uint32_t senders_free;  // so many need no grant
  const std::uint32_t grants_most;
  std::uint32_t resends_in_a_row = 0;

  // Words to those who are not peers (any more): resets and retries, bounded in number and in rate, and the closes of
  // disconnect(). While others have something to send, every second train at most is one.
  static constexpr std::size_t kStraysMax = 256;  // beyond it no answer is taken in
  base::Fifo<Stray> strays;
  bool is_leaving = false;  // no session is opened any more
  AnswerBudget answer_budget;
  AnswerBudget handshake_budget;  // what is computed for those who greet us,
  AnswerBudget change_budget;     // and for peers that change their keys
  TurnedAway turned_away;         // the last one
  bool was_stray = false;         // the last train

  static constexpr std::size_t kNoticesMax = 1U << 16;
  base::Fifo<Outcome> outcomes;
  base::Fifo<Notice> notices;
  std::uint32_t losses_untold = 0;  // of these

  // The datagram just received, as far as it has not been delivered.
  wire::RecordReader reader;
  PeerHandle reader_peer;
  std::optional<Delivery> chunk_delivery;

  // What the last train was, for take_back(); nothing after any other call that may change it.
  struct HandedOut {
    enum class What : std::uint8_t {
      nothing,
      data,
      parts,
      ack,
      probe,
      probe_answer,
      hello,
      hello_ack,
      rekey,
      stray
    } what = What::nothing;
    Peer* peer = nullptr;
    AckDebt debt;             // before the train settled it
    base::Instant last_sent;  // before the train
    Stray stray;
    Segment* segment = nullptr;      // parts: of this one
    std::uint32_t parts_before = 0;  // sent before the train
    wire::Sequence probe;            // the number answered
    std::uint32_t probe_bytes = 0;   // asked for
  };
  HandedOut handed_out;
  void hand_out(HandedOut::What what, Peer& peer) {
    handed_out.what = what;
    handed_out.peer = &peer;
    handed_out.debt = peer.ack;
  }

  // The heads of parts, until the next call.
  static constexpr std::size_t kPartHeadBytes = wire::kSegmentHeaderBytes + wire::kPartBytes;
  alignas(8) std::array<std::array<std::byte, kPartHeadBytes>, wire::kPartsMost> part_heads;

  // The bytes of a segment that is not data, until the next call.
  alignas(
      8) std::array<std::byte, wire::kSegmentHeaderBytes + wire::kAckWordsMax * sizeof(std::uint64_t)> control_bytes;

  // A train as it goes out sealed, and a segment as it came before it was; null if nothing is sealed.
  static constexpr std::uint32_t kTrainBytesMost = 65'535;
  static constexpr std::size_t kStagingBytes = kTrainBytesMost + 64 * wire::kTagBytes;
  std::unique_ptr<std::byte[]> staging, opened;
};

}  // namespace fairlead::link
