#pragma once
// All limits and times of the link, with their defaults. The link clamps values outside the given range.

#include <chrono>
#include <cstdint>

#include "base/socket_address.hpp"
#include "base/time.hpp"

namespace fairlead::link {

using namespace std::chrono_literals;

struct LinkOptions {
  base::SocketAddress own{};  // this side's address, to detect that it is translated on the way; port 0: unknown

  // Sizes of messages and segments, in bytes.
  std::uint32_t datagram_size_max = 65'507;  // largest datagram to send or to announce; 1200..65507
  std::uint32_t command_segment_max = 1472;  // size up to which waiting tiny messages are packed; 1200..1920
  std::uint32_t tiny_max = 768;              // messages up to this use the command channel; 0..embedded_max
  std::uint32_t embedded_max = 768;          // messages up to this are copied at submission; 0..1024

  // The window: what one peer may have in flight towards this side, and this side towards one peer. Bytes are charged
  // as the kernel charges a socket buffer: the datagram plus segment_overhead.
  std::uint32_t window_segments = 1024;   // 64..4096, a power of two
  std::uint64_t window_bytes = 1U << 20;  // >= 65536: one peer's share of the path's receive buffer
  std::uint32_t segment_overhead = 832;   // the kernel's own bytes per datagram
  std::uint32_t command_reserve = 16;     // segments of the window that bulk leaves to tiny messages

  std::uint64_t first_bytes = 256U << 10;  // initial congestion window, six segments at least
  std::uint64_t inrush_bytes = 64U << 10;  // in flight beyond the bandwidth-delay product, four segments at least

  // Grants (grants.hpp): what many peers together may have in flight towards this side.
  std::uint64_t receive_buffer_bytes = 4U << 20;  // of the path, as the kernel charges it
  std::uint64_t granted_bytes = 80U << 10;  // for all senders of long messages together, one segment each at least

  // Bounds of queues and tables.
  std::uint32_t command_depth = 4096;     // tiny messages that may wait for one peer; beyond it submit returns `again`
  std::uint32_t data_depth = 4096;        // longer messages to one peer, waiting or in flight; beyond it `again`
  std::uint32_t messages_max = 1U << 18;  // messages of all peers whose outcome has not been fetched
  std::uint32_t rooms_max = 1U << 16;     // segments of all peers, waiting or in flight (the hotel)
  std::uint32_t reassembly_slots = 64;    // 1..64: chunked messages that one peer may have open towards this side
  std::uint64_t parts_bytes = 4U << 20;   // memory for segments that arrive in parts, of all peers
  std::uint32_t peers_max = 1U << 16;     // <= 2^20
  std::uint32_t half_open_max = 4096;     // half-open sessions: a hello with a valid cookie and no segment yet
  std::uint32_t half_open_each_max = 1024;  // half-open sessions of one host

  // Acknowledging.
  base::Duration ack_after = 25us;  // an ACK waits this long for a data segment to carry it

  // Repair.
  std::uint32_t packet_threshold = 3;       // a segment is lost if so many later transmissions have arrived (acks.hpp)
  base::Duration probe_after_min = 60us;    // tail probe after 2 SRTT or SRTT + 4 RTTVAR, + ACK delay, but not sooner
  base::Duration resend_after_min = 2ms;    // timeout after SRTT + 4 RTTVAR + ACK delay, but not sooner
  base::Duration resend_after_max = 200ms;  // cap of the timeout's exponential back-off
  std::uint32_t resends_in_a_row = 16;      // then other traffic has its turn

  // Opening and giving up.
  base::Duration hello_after = 3ms;  // first repeat of a hello; doubles up to hello_after_max
  base::Duration hello_after_max = 200ms;
  base::Duration connect_within = 2s;  // a peer never heard within this: `unreachable`
  base::Duration give_up_after = 5s;   // nothing acknowledged for so long, while something is in flight: `silent`
  base::Duration half_open_for = 2s;   // a half-open session is forgotten after this

  base::Duration idle_release = 1s;     // a quiet peer releases its window and tables after this
  base::Duration forget_after = 10min;  // a peer unused for so long may be forgotten when others come

  // Answers to strangers (answer_budget.hpp): resets, and cookies for their hellos.
  std::uint32_t answers_per_second = 4096;     // to all strangers together,
  std::uint32_t answers_each_per_second = 64;  // and in addition to each host
  // Handshakes answered for sealed hellos with a valid cookie. Each costs some 100 us of processor time.
  std::uint32_t handshakes_per_second = 1024;
  std::uint32_t handshakes_each_per_second = 64;

  /// Returns the bytes that the kernel charges a receive buffer for these datagrams.
  std::uint64_t charge(std::uint64_t bytes, std::uint64_t datagrams = 1) const {
    return bytes + datagrams * segment_overhead;
  }
};

}  // namespace fairlead::link
