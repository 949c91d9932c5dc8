#pragma once
// Receives datagrams: parses each, finds its session by its token, processes its ACK and checks its sequence. New data
// is delivered at once, also beyond a gap.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "link/acks.hpp"
#include "link/datagram_sizes.hpp"
#include "link/grants.hpp"
#include "link/key_changes.hpp"
#include "link/link_context.hpp"
#include "link/parts_room.hpp"
#include "link/sessions.hpp"
#include "link/strangers.hpp"
#include "wire/record.hpp"

namespace fairlead::link {

class Receiver {
 public:
  /// Other parts that the receiver calls; all of them outlive it.
  struct Parts {
    PeerTable& peers;
    Strangers& strangers;
    Grants& grants;
    DatagramSizes& sizes;
    Acks& acks;
    KeyChanges& keys;
    Sessions& sessions;
  };
  Receiver(LinkContext& context, const Parts& parts);

  /// As Link::receive() and Link::next_delivery().
  void receive(const base::SocketAddress& from, std::span<const std::byte> bytes, base::Instant now,
               std::uint32_t datagram_size_max);
  std::optional<Delivery> next();
  /// Drops what has not been delivered of the last datagram.
  void forget_last();

 private:
  void on_segment(const base::SocketAddress& from, const wire::Frame& frame, base::Instant now,
                  std::uint32_t datagram_size_max);
  void on_session_segment(const base::SocketAddress& from, const wire::Frame& frame, base::Instant now);
  void on_sealed_segment(Peer& peer, bool is_of_candidate, const wire::Frame& frame, base::Instant now);
  void accept_segment(Peer& peer, const wire::Frame& frame, base::Instant now);
  void on_data(Peer& peer, const wire::Frame& frame, base::Instant now);
  void on_part(Peer& peer, const wire::Frame& frame, base::Instant now);
  bool accept_chunk(Peer& peer, const wire::Record& record);

  LinkContext& context_;
  PeerTable& peers_;
  Strangers& strangers_;
  Grants& grants_;
  DatagramSizes& sizes_;
  Acks& acks_;
  KeyChanges& keys_;
  Sessions& sessions_;
  PartsRoom parts_room_;
  std::unique_ptr<std::byte[]> opened_;  // a segment after its decryption; null where nothing is sealed

  // What has not been delivered yet of the datagram received last.
  wire::RecordReader reader_;
  PeerHandle reader_peer_;
  std::optional<Delivery> chunk_delivery_;
};

}  // namespace fairlead::link
