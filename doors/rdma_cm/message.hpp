#pragma once
// What connection managers say to each other: InfiniBand's messages (REQ, REP, RTU, REJ, DREQ, DREP, SIDR), each one a
// reliable message of the net face, so that none of them needs a retry or a sequence number of its own. A connection
// has a random name on each side; the initiator puts its own into `from`, and everything after the request carries the
// receiver's name in `to`.

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string_view>

#include "doors/rdma_cm/socket_name.hpp"

namespace fairlead::rdma_cm {

enum class Kind : std::uint8_t {
  req = 1,
  rep = 2,
  rtu = 3,
  rej = 4,
  dreq = 5,
  drep = 6,
  sidr_req = 7,
  sidr_rep = 8,
  busy = 9,  // answers req and sidr_req: the listener's backlog is full, ask again
  alive =
      10  // that it is taken tells that the receiver lives; a connection that it names and is over is answered by dreq
};
inline constexpr unsigned kKinds = 11;

struct PrivateData {
  std::uint8_t length = 0;
  std::array<std::uint8_t, 255> bytes{};

  bool operator==(const PrivateData& other) const;
};

/// The most private data that a message of this kind carries, as InfiniBand has it.
std::size_t private_data_max(Kind kind);
/// What a port space of IP takes of it for its own header, in requests.
inline constexpr std::size_t kIpHeaderSize = 36;

/// What the two ends agree on.
struct Terms {
  std::uint32_t qp_num = 0;  // 24 bits
  std::uint32_t qkey = 0;
  std::uint8_t responder_resources = 0;  // reads and atomics that the sender serves at once
  std::uint8_t initiator_depth = 0;      // that it asks for at once
  std::uint8_t flow_control = 0;
  std::uint8_t retry_count = 0;      // 3 bits
  std::uint8_t rnr_retry_count = 0;  // 3 bits
  std::uint8_t has_srq = 0;
  bool operator==(const Terms&) const = default;
};

struct Message {
  Kind kind = Kind::alive;
  std::uint8_t reason = 0;  // of rej, and of a dreq that answers alive; the status of sidr_rep
  std::uint16_t port_space = 0;
  std::uint8_t qp_type = 0;
  std::uint16_t source_port = 0;  // of the initiator, for the program to see
  SocketName target;              // whom the initiator asked for
  std::uint64_t from = 0, to = 0;
  std::uint32_t psn = 0;  // that the receiver's first packet has; 24 bits
  Terms terms;
  PrivateData data;
  bool operator==(const Message&) const = default;
};

inline constexpr std::size_t kMessageSizeMax = 320;

/// Returns how many bytes it has written.
std::size_t encode(const Message& message, std::span<std::byte, kMessageSizeMax> out);

/// All that a stranger may send is refused by name: "truncated", "version", ...
std::expected<Message, std::string_view> decode(std::span<const std::byte> bytes);

}  // namespace fairlead::rdma_cm
