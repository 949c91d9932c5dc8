#pragma once
// A process that means harm, seen from the network: a UDP socket of the loopback that speaks the link's wire format by
// hand. It opens a session as anybody may, then says any envelope with any payload, forges what it likes, acknowledges
// only if it wants to. It knows no secret that it was not told.
//
//   Stranger stranger(target);            ASSERT_TRUE(stranger.open_session());
//   stranger.say(envelope, bytes);        ...as many as a datagram holds; more go on in the next
//   ASSERT_TRUE(stranger.settle());       all of them were received, and heard() is what was answered
//
// Nothing of it depends on time: what gets lost is sent again until it is acknowledged, within a bound.

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
    wire::Chunk chunk;  // of a message in several; its size is 0 for a whole one
    Bytes bytes;
  };

  /// `ip`: of the loopback, on which it has a port of its own.
  /// It is the first free one from `port_first` on, if that is not 0.
  explicit Stranger(const base::SocketAddress& target, const std::string& ip = "127.0.0.1",
                    std::uint16_t port_first = 0);

  const base::SocketAddress& address() const { return address_; }

  // The session
  // --------------------------------------------------------------------------------------------------------

  /// Greets until it is answered, shows the cookie that it is given, and proves that the answer was heard: false if it
  /// never is.
  bool open_session(Limit limit = std::chrono::seconds(10));
  /// Half of it: the answer was heard, and the target does not know that yet.
  bool greet(Limit limit = std::chrono::seconds(10));
  bool is_open() const { return theirs_.has_value(); }
  /// What the target said of itself; while it is open.
  const wire::Hello& theirs() const { return *theirs_; }
  /// The target has ended the session, by a close or by a reset.
  bool is_closed() const { return is_closed_; }
  /// What the next hello says of us; the token is a new one each time.
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

  /// A whole message, in a datagram with others until it is full or flush() is called.
  void say(const wire::Envelope& envelope, std::span<const std::byte> bytes = {});
  /// A chunk, in a datagram of its own.
  void say_chunk(const wire::Envelope& envelope, const wire::Chunk& chunk, std::span<const std::byte> bytes);
  void flush();
  /// Whatever was said has been received; what was answered meanwhile is in heard(). False after `limit`, or if the
  /// target has ended the session.
  bool settle(Limit limit = std::chrono::seconds(10));

  /// A header and a payload as a datagram, with the right checksum.
  static Bytes datagram_of(const wire::Header& header, std::span<const std::byte> payload = {});
  /// A whole message without a payload, as what a segment of data carries.
  static Bytes record_of(const wire::Envelope& envelope);
  /// What it would greet with; token 0 in the header, as no cookie was given.
  static Bytes datagram_of(const wire::Hello& hello);
  /// Any header with any payload, as it is; its checksum is right.
  void send_segment(const wire::Header& header, std::span<const std::byte> payload = {});
  /// Any bytes.
  void send_datagram(std::span<const std::byte> datagram);

  // Hearing
  // ------------------------------------------------------------------------------------------------------------

  /// Takes what comes until there is something of `count` more messages, or `limit` has passed.
  bool listen(std::size_t count, Limit limit = std::chrono::seconds(10));
  /// Messages so far, in the order of their arrival; the test may take them out.
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
  static constexpr std::size_t kInFlightMost = 16;     // datagrams: the target's socket holds them

  base::FileDescriptor socket_;
  base::SocketAddress target_, address_;
  std::uint64_t tokens_ = 0;
  std::uint64_t cookie_ = 0;  // that the target gave us for our hello
  std::optional<wire::Hello> theirs_;
  bool is_closed_ = false;

  wire::Sequence next_;                     // of ours
  std::map<std::uint32_t, Bytes> unacked_;  // by distance from the first
  Bytes run_;                               // of records, not yet sent
  wire::Sequence expected_;                 // of theirs
  wire::Sequence told_;                     // that it was, last
  std::set<std::uint32_t> ahead_;           // of theirs, beyond a gap
  std::deque<Heard> heard_;
  std::size_t heard_count_ = 0;
  Bytes buffer_ = Bytes(65'536);
};

}  // namespace fairlead::tests
