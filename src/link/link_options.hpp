#pragma once
// Every bound and every time of the link, with its default. Values outside the range given are brought into it when
// the link is made.

#include <chrono>
#include <cstdint>

#include "base/time.hpp"

namespace fairlead::link {

using namespace std::chrono_literals;

struct LinkOptions {
  // Sizes of messages and segments, in bytes.
  std::uint32_t datagram_size_max = 65'000;  // 1200..65000: the largest datagram we send or announce
  std::uint32_t command_segment_max = 1472;  // 1200..1920: to which tiny messages that wait together are packed
  std::uint32_t tiny_max = 768;              // 0..embedded_max: up to this a message goes by the command channel
  std::uint32_t embedded_max = 768;          // 0..1024: up to this a message is copied at submit

  // The window: what one peer may have in flight towards us, and we towards one peer. Bytes are charged as the kernel
  // charges a socket buffer: the datagram plus segment_overhead.
  std::uint32_t window_segments = 1024;   // 64..4096, a power of two
  std::uint64_t window_bytes = 1U << 20;  // >= 65536: our share of the path's receive buffer for one peer
  std::uint32_t segment_overhead = 832;   // the kernel's own bytes per datagram
  std::uint32_t command_reserve = 16;     // segments of the window that bulk leaves to tiny messages

  std::uint64_t first_bytes = 256U << 10;  // of them until the path shows that it carries more, six segments at least
  std::uint64_t inrush_bytes = 64U << 10;  // in flight besides what fills the path, four segments at least

  // Grants (grants.hpp): what all peers together may have in flight towards us once there are many.
  std::uint64_t receive_buffer_bytes = 4U << 20;  // of the path, as the kernel charges it
  std::uint64_t granted_bytes = 80U << 10;        // to all senders of long messages together, one segment each at least

  // Bounds of queues and tables.
  std::uint32_t command_depth = 4096;       // tiny messages to one peer that wait to be sent; then `again`
  std::uint32_t data_depth = 4096;          // longer messages to one peer that wait or are in flight; then `again`
  std::uint32_t messages_max = 1U << 18;    // messages of all peers whose outcome has not been fetched
  std::uint32_t rooms_max = 1U << 16;       // segments of all peers that wait or are in flight (the hotel)
  std::uint32_t reassembly_slots = 64;      // 1..64: chunked messages that one peer may have open towards us
  std::uint64_t parts_bytes = 4U << 20;     // held of segments that come in parts, of all peers
  std::uint32_t peers_max = 1U << 16;       // <= 2^20
  std::uint32_t half_open_max = 4096;       // peers that said hello, with a cookie, and nothing else yet
  std::uint32_t half_open_each_max = 1024;  // of one host

  // Acknowledging.
  base::Duration ack_after = 25us;  // an ACK waits so long for a segment that can carry it

  // Repair.
  std::uint32_t packet_threshold = 3;       // a segment is lost if so many sent later have arrived...
  base::Duration probe_after_min = 60us;    // tail probe: 2 SRTT or SRTT + 4 RTTVAR, + ACK delay, but not sooner
  base::Duration resend_after_min = 2ms;    // timeout: SRTT + 4 RTTVAR + ACK delay, but not sooner
  base::Duration resend_after_max = 200ms;  // cap of its exponential back-off
  std::uint32_t resends_in_a_row = 16;      // then others have their turn

  // Opening and giving up.
  base::Duration hello_after = 3ms;  // repeat of a hello; doubles up to hello_after_max
  base::Duration hello_after_max = 200ms;
  base::Duration connect_within = 2s;  // never heard: `unreachable`
  base::Duration give_up_after = 5s;   // nothing acknowledged while something is in flight: `silent`
  base::Duration half_open_for = 2s;   // a hello that nothing follows is forgotten

  base::Duration idle_release = 1s;     // a quiet peer gives its window and tables back
  base::Duration forget_after = 10min;  // a peer unused for so long is forgotten when others come

  // Answers to strangers (answer_budget.hpp): resets, and cookies for their hellos.
  std::uint32_t answers_per_second = 4096;     // to all of them together,
  std::uint32_t answers_each_per_second = 64;  // and these to each host besides
  // Handshakes answered, of sealed hellos that showed a cookie: some 100 us of a processor each.
  std::uint32_t handshakes_per_second = 1024;
  std::uint32_t handshakes_each_per_second = 64;

  /// What datagrams of so many bytes cost a receive buffer.
  std::uint64_t charge(std::uint64_t bytes, std::uint64_t datagrams = 1) const {
    return bytes + datagrams * segment_overhead;
  }
};

}  // namespace fairlead::link
