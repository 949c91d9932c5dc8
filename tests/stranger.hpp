#pragma once
// A malicious process on the network: a UDP socket of the loopback that speaks the link's wire format. It opens a
// session as anybody may, then sends or forges any message, and acknowledges only if told to. It knows only secrets
// that it was told.
//
//   Stranger stranger(target);            ASSERT_TRUE(stranger.open_session());
//   stranger.say(envelope, bytes);        ...as many as a datagram holds; more go on in the next
//   ASSERT_TRUE(stranger.settle());       all of them were received, and heard() is what was answered
//
// Time does not affect the result: lost datagrams are retransmitted until acknowledged, within a bound.

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/file_descriptor.hpp"
#include "base/socket_address.hpp"
#include "wire/envelope.hpp"
#include "wire/hello.hpp"
#include "wire/record.hpp"
#include "wire/segment.hpp"

namespace fairlead::tests {

class Stranger {
 public:
  using Bytes = std::vector<std::byte>;
  using Limit = std::chrono::milliseconds;

  struct Heard {
    wire::Envelope envelope;
    wire::Chunk chunk;  // of a message in several chunks; size 0 for a whole message
    Bytes bytes;
  };

  /// `ip`: an address of the loopback. The port is the first free one from `port_first` on, or any port if that is 0.
  explicit Stranger(const base::SocketAddress& target, const std::string& ip = "127.0.0.1",
                    std::uint16_t port_first = 0);

  const base::SocketAddress& address() const { return address_; }

  // The session
  // --------------------------------------------------------------------------------------------------------

  /// Sends hellos until one is answered, returns the cookie, and acknowledges the answer. False if no answer comes.
  bool open_session(Limit limit = std::chrono::seconds(10));
  /// Opens half of a session: the stranger has the answer to its hello, but the target does not know that yet.
  bool greet(Limit limit = std::chrono::seconds(10));
  bool is_open() const { return theirs_.has_value(); }
  /// The target's hello. Valid while the session is open.
  const wire::Hello& theirs() const { return *theirs_; }
  /// Whether the target has ended the session, by a close or by a reset.
  bool is_closed() const { return is_closed_; }
  /// The contents of the next hello. Each hello gets a new token.
  wire::Hello own{.epoch = 1,
                  .token = 0,
                  .window_bytes = 1U << 20,
                  .initial_sequence = {100},
                  .datagram_size_max = 65'000,
                  .window_segments = 1024,
                  .reassembly_slots = 64,
                  .ack_after = {}};
  /// Whether it acknowledges what it receives.
  bool acknowledges = true;

  // Saying
  // -------------------------------------------------------------------------------------------------------------

  /// Sends a whole message. Messages share a datagram until it is full or flush() is called.
  void say(const wire::Envelope& envelope, std::span<const std::byte> bytes = {});
  /// Sends a chunk in a datagram of its own.
  void say_chunk(const wire::Envelope& envelope, const wire::Chunk& chunk, std::span<const std::byte> bytes);
  void flush();
  /// Waits until the target has acknowledged all data. Answers are then in heard(). False after `limit`, or if the
  /// target has ended the session.
  bool settle(Limit limit = std::chrono::seconds(10));

  /// Builds a datagram with a valid checksum.
  static Bytes datagram_of(const wire::Header& header, std::span<const std::byte> payload = {});
  /// Encodes a whole message without payload, as it is in a data segment.
  static Bytes record_of(const wire::Envelope& envelope);
  /// Builds a hello datagram without a cookie (token 0 in the header).
  static Bytes datagram_of(const wire::Hello& hello);
  /// Sends any header and payload, with a valid checksum.
  void send_segment(const wire::Header& header, std::span<const std::byte> payload = {});
  /// Any bytes.
  void send_datagram(std::span<const std::byte> datagram);

  // Hearing
  // ------------------------------------------------------------------------------------------------------------

  /// Receives until `count` more messages have begun to arrive, or until `limit` has passed.
  bool listen(std::size_t count, Limit limit = std::chrono::seconds(10));
  /// The received messages in the order of their arrival. The test may remove them.
  std::deque<Heard>& heard() { return heard_; }

 private:
  using Instant = std::chrono::steady_clock::time_point;

  void resend();
  bool receive_one(Limit limit);
  void on_segment(const wire::Frame& frame);
  void take_ack(const wire::Frame& frame);
  void acknowledge();
  wire::Header header_of(wire::Kind kind);

  static constexpr std::size_t kSegmentMost = 32'768;  // bytes of records in a datagram
  static constexpr std::size_t kInFlightMost = 16;     // in flight; the target's socket holds them

  base::FileDescriptor socket_;
  base::SocketAddress target_, address_;
  std::uint64_t tokens_ = 0;
  std::uint64_t cookie_ = 0;  // from the target, for our hello
  std::optional<wire::Hello> theirs_;
  bool is_closed_ = false;

  wire::Sequence next_;                     // of our next segment
  std::map<std::uint32_t, Bytes> unacked_;  // by distance from the first sequence number
  Bytes run_;                               // of records that are not sent yet
  wire::Sequence expected_;                 // next one from the target
  wire::Sequence told_;                     // the last one that we acknowledged
  std::set<std::uint32_t> ahead_;           // received beyond a gap
  std::deque<Heard> heard_;
  std::size_t heard_count_ = 0;
  Bytes buffer_ = Bytes(65'536);
};

}  // namespace fairlead::tests
