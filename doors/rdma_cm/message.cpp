#include "doors/rdma_cm/message.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace fairlead::rdma_cm {
namespace {

constexpr std::uint16_t kMagic = 0xfc01;  // the lower byte is the version
constexpr std::uint32_t kPairNumberMax = 0xff'ffff;
constexpr std::uint8_t kRetriesMax = 7;
constexpr unsigned kPairTypeMax = 10;  // the largest ibv_qp_type

/// Calls `field` for each field in wire order: big endian, as wide as its type. Encoding and decoding share this list.
template <typename Said, typename Field>
void each_field(Said& message, std::uint16_t& magic, std::uint8_t& kind, std::uint8_t& family, Field&& field) {
  field(magic);
  field(kind);
  field(message.reason);
  field(message.port_space);
  field(message.qp_type);
  field(family);
  field(message.source_port);
  field(message.target.port);
  for (auto& byte : message.target.ip) field(byte);
  field(message.from);
  field(message.to);
  field(message.psn);
  auto& terms = message.terms;
  field(terms.qp_num);
  field(terms.qkey);
  field(terms.responder_resources);
  field(terms.initiator_depth);
  field(terms.flow_control);
  field(terms.retry_count);
  field(terms.rnr_retry_count);
  field(terms.has_srq);
  field(message.data.length);
}

constexpr std::size_t kHeaderSize = 2 + 1 + 1 + 2 + 1 + 1 + 2 + 2 + 16 + 8 + 8 + 4 + 4 + 4 + 6 + 1;
static_assert(kHeaderSize + 255 <= kMessageSizeMax);

bool needs_to(Kind kind) {
  return kind != Kind::req && kind != Kind::sidr_req && kind != Kind::alive && kind != Kind::rej;
}

/// Returns the name of an invalid field in a completely decoded message; empty if all are valid.
std::string_view fault_of(const Message& message, std::uint8_t family) {
  const Terms& terms = message.terms;
  if (message.data.length > private_data_max(message.kind)) return "private_data";
  if (terms.qp_num > kPairNumberMax || message.psn > kPairNumberMax) return "number";
  if (terms.retry_count > kRetriesMax || terms.rnr_retry_count > kRetriesMax) return "retries";
  if (terms.flow_control > 1 || terms.has_srq > 1) return "flag";
  if (message.qp_type > kPairTypeMax) return "qp_type";
  if (family > std::to_underlying(Family::gid)) return "family";
  if (family == std::to_underlying(Family::v4) && !is_v4(message.target.ip)) return "family";
  if (message.kind != Kind::alive && message.from == 0) return "from";
  if (needs_to(message.kind) && message.to == 0) return "to";
  return {};
}

}  // namespace

bool PrivateData::operator==(const PrivateData& other) const {
  return length == other.length && std::equal(bytes.begin(), bytes.begin() + length, other.bytes.begin());
}

std::size_t private_data_max(Kind kind) {
  constexpr std::size_t kByKind[kKinds] = {0, 92, 196, 224, 148, 220, 224, 216, 136, 0, 0};
  return kByKind[std::to_underlying(kind)];
}

std::size_t encode(const Message& message, std::span<std::byte, kMessageSizeMax> out) {
  std::uint16_t magic = kMagic;
  std::uint8_t kind = std::to_underlying(message.kind), family = std::to_underlying(message.target.family);
  std::size_t end = 0;
  each_field(message, magic, kind, family, [&](const auto& value) {
    for (std::size_t left = sizeof value; left > 0; --left)
      out[end++] = static_cast<std::byte>(std::uint64_t{value} >> (8 * (left - 1)));
  });
  for (std::size_t i = 0; i < message.data.length; ++i) out[end++] = static_cast<std::byte>(message.data.bytes[i]);
  return end;
}

std::expected<Message, std::string_view> decode(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeaderSize) return std::unexpected("truncated");
  Message message;
  std::uint16_t magic = 0;
  std::uint8_t kind = 0, family = 0;
  std::size_t end = 0;
  each_field(message, magic, kind, family, [&](auto& value) {
    std::uint64_t number = 0;
    for (std::size_t left = sizeof value; left > 0; --left)
      number = number << 8 | std::to_integer<std::uint64_t>(bytes[end++]);
    value = static_cast<std::remove_reference_t<decltype(value)>>(number);
  });
  if (magic != kMagic) return std::unexpected("version");
  if (kind == 0 || kind >= kKinds) return std::unexpected("kind");
  message.kind = static_cast<Kind>(kind);
  if (const std::string_view fault = fault_of(message, family); !fault.empty()) return std::unexpected(fault);
  message.target.family = static_cast<Family>(family);
  if (bytes.size() != end + message.data.length) return std::unexpected("length");
  for (std::size_t i = 0; i < message.data.length; ++i)
    message.data.bytes[i] = std::to_integer<std::uint8_t>(bytes[end + i]);
  return message;
}

}  // namespace fairlead::rdma_cm
