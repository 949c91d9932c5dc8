#pragma once
// Decides what is sent now. Order of service: greetings and other control segments, an answer to a stranger, resends (a
// limited number in a row), ready peers in turn, ACKs that found no carrier. A train is several segments to one peer,
// of one size; only its last may be shorter.
//
// Ready peers share by bytes (deficit round robin). A peer with short trains gets as much as one with long ones, and a
// lone message waits for one round at most. A peer that is ready alone is not charged.
//
// A peer on whose path a queue was found is paced (pacer.hpp): its long messages wait for their time; the command
// channel does not.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/time.hpp"
#include "link/grants.hpp"
#include "link/greetings.hpp"
#include "link/link_context.hpp"
#include "link/segment_source.hpp"
#include "link/strangers.hpp"
#include "link/train_sealer.hpp"

namespace fairlead::link {

class Trains {
 public:
  /// Other parts that trains need; all of them outlive this object.
  struct Parts {
    Strangers& strangers;
    Greetings& greetings;
    Grants& grants;
    SegmentSource& source;
    TrainSealer& sealer;
  };
  Trains(LinkContext& context, const Parts& parts);

  /// As Link::next_train() and Link::take_back().
  bool next(base::Instant now, std::uint32_t bytes_max, std::uint32_t datagrams_max, Train& train);
  void take_back(const Train& train, base::Instant now);
  /// Forbids take_back() of the last train, after a call that may have changed its state.
  void forget_last() { last_.what = Last::What::nothing; }

 private:
  bool serve_peer(Peer& peer, base::Instant now, std::uint32_t bytes_max, std::uint32_t datagrams_max, Train& train);
  static bool begin_turn(Peer& peer);
  void add_queued(Peer& peer, Channel channel, const wire::Header& base, base::Instant now, std::uint32_t bytes_max,
                  std::uint32_t datagrams_max, Train& train);
  void add_cut(Peer& peer, const wire::Header& base, base::Instant now, std::uint32_t bytes_max,
               std::uint32_t datagrams_max, Train& train);
  bool add_fresh(Segment& segment, const wire::Header& base, base::Instant now, Train& train);
  void end_train(Peer& peer, base::Instant now, Train& train);
  void transmit(Segment& segment, const wire::Header& base, base::Instant now, Train& train);
  static void note_transmission(Segment& segment, base::Instant now);
  wire::Header header_with_ack(const Peer& peer, base::Instant now) const;

  void serve_resends(base::Instant now, std::uint32_t bytes_max, std::uint32_t datagrams_max, Train& train);
  void empty_if_void(Segment& segment);
  bool is_alone_ready(const Peer& peer) const;
  void count_resend(const Segment& segment, wire::Header& header);
  void serve_parts(Segment& segment, const wire::Header& base, base::Instant now, std::uint32_t bytes_max,
                   std::uint32_t datagrams_max, Train& train);

  // trains_control.cpp
  bool serve_control(base::Instant now, Train& train);
  void serve_rekey(Peer& peer, base::Instant now, Train& train);
  void serve_hello_ack(Peer& peer, base::Instant now, Train& train);
  void serve_probe_answer(Peer& peer, base::Instant now, Train& train);
  bool serve_hello(Peer& peer, base::Instant now, Train& train);
  void serve_ack(Peer& peer, base::Instant now, Train& train);
  void serve_probe(Peer& peer, base::Instant now, Train& train);
  bool serve_stray(base::Instant now, Train& train);
  void send_control(const base::SocketAddress& to, const wire::Header& header, std::span<const std::byte> payload,
                    Train& train);
  void hang_control(const base::SocketAddress& to, std::size_t size, Train& train);

  // trains_take_back.cpp
  void take_back_data(Peer& peer, const Train& train);
  void take_back_parts(Peer& peer, const Train& train);
  void undo_transmission(Segment& segment);

  /// Describes the last train for take_back(); `nothing` after any call that may have changed it.
  struct Last {
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
    Segment* segment = nullptr;      // parts: the segment that they belong to
    std::uint32_t parts_before = 0;  // sent before the train
    wire::Sequence probe;            // sequence of the probe answered
    std::uint32_t probe_bytes = 0;   // length of the probe
  };
  void note(Last::What what, Peer& peer) {
    last_.what = what;
    last_.peer = &peer;
    last_.debt = peer.ack;
  }

  LinkContext& context_;
  Strangers& strangers_;
  Greetings& greetings_;
  Grants& grants_;
  SegmentSource& source_;
  TrainSealer& sealer_;
  Last last_;
  std::uint32_t resends_in_a_row_ = 0;
  bool was_stray_ = false;  // while others have data to send, at most every second train is an answer to a stranger

  // Heads of parts, and the bytes of a control segment; valid until the next call.
  static constexpr std::size_t kPartHeadBytes = wire::kSegmentHeaderBytes + wire::kPartBytes;
  alignas(8) std::array<std::array<std::byte, kPartHeadBytes>, wire::kPartsMost> part_heads_;
  alignas(
      8) std::array<std::byte, wire::kSegmentHeaderBytes + wire::kAckWordsMax * sizeof(std::uint64_t)> control_bytes_;
};

}  // namespace fairlead::link
