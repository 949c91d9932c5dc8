#pragma once
// The messages between connection managers: those of InfiniBand (REQ, REP, RTU, REJ, DREQ, DREP, SIDR). Each is one
// reliable message of src/net, so none needs retransmission or a sequence number of its own. A connection has a random
// name on each side. The initiator puts its own name into `from`. Every message after the request carries the
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
  busy = 9,   // answers req and sidr_req: the listener's backlog is full, try again later
  alive = 10  // its acceptance shows that the receiver lives; a dreq answers it if the connection that it names is over
};
inline constexpr unsigned kKinds = 11;

struct PrivateData {
  std::uint8_t length = 0;
  std::array<std::uint8_t, 255> bytes{};

  bool operator==(const PrivateData& other) const;
};

/// Returns the maximum private data in a message of this kind, as InfiniBand defines it.
std::size_t private_data_max(Kind kind);
/// Bytes of it that an IP port space uses for its own header in requests.
inline constexpr std::size_t kIpHeaderSize = 36;

/// The parameters that the two ends agree on.
struct Terms {
  std::uint32_t qp_num = 0;  // 24 bits
  std::uint32_t qkey = 0;
  std::uint8_t responder_resources = 0;  // reads and atomics that the sender serves concurrently
  std::uint8_t initiator_depth = 0;      // reads and atomics that the sender issues concurrently
  std::uint8_t flow_control = 0;
  std::uint8_t retry_count = 0;      // 3 bits
  std::uint8_t rnr_retry_count = 0;  // 3 bits
  std::uint8_t has_srq = 0;
  bool operator==(const Terms&) const = default;
};

struct Message {
  Kind kind = Kind::alive;
  std::uint8_t reason = 0;  // of rej, and of a dreq that answers alive; for sidr_rep: the status
  std::uint16_t port_space = 0;
  std::uint8_t qp_type = 0;
  std::uint16_t source_port = 0;  // the initiator's, for the program to see
  SocketName target;              // the address that the initiator asked for
  std::uint64_t from = 0, to = 0;
  std::uint32_t psn = 0;  // of the first packet to the receiver; 24 bits
  Terms terms;
  PrivateData data;
  bool operator==(const Message&) const = default;
};

inline constexpr std::size_t kMessageSizeMax = 320;

/// Returns the number of bytes written.
std::size_t encode(const Message& message, std::span<std::byte, kMessageSizeMax> out);

/// Decodes a message. Returns the name of the fault if it is malformed: "truncated", "version", ...
std::expected<Message, std::string_view> decode(std::span<const std::byte> bytes);

}  // namespace fairlead::rdma_cm
