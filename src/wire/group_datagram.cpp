#include "wire/group_datagram.hpp"

#include "wire/checksum.hpp"
#include "wire/pair_words.hpp"
#include "wire/segment.hpp"

namespace fairlead::wire {
namespace {

constexpr std::size_t kGroupChecksum = at<std::uint32_t>(kGroupFields, "checksum");
constexpr unsigned kGroupFlags =
    request_flags::imm | request_flags::solicited | 0xFFU << request_flags::traffic_class_shift;

std::uint32_t checksum_of_group(std::span<const std::byte> datagram) {
  std::array<std::byte, kGroupHeaderBytes> header;
  std::memcpy(header.data(), datagram.data(), header.size());
  store(header.data(), kGroupChecksum, std::uint32_t{0});
  Checksum checksum;
  checksum.add(header);
  checksum.add(datagram.subspan(header.size()));
  return checksum.value();
}

}  // namespace

std::expected<GroupDatagram, DropReason> decode_group(std::span<const std::byte> datagram) {
  if (datagram.size() < kGroupHeaderBytes) return std::unexpected(DropReason::too_short);
  const std::byte* from = datagram.data();
  if (load<std::uint8_t>(from, at<std::uint8_t>(kGroupFields, "version")) != kVersion)
    return std::unexpected(DropReason::wrong_version);
  if (load<std::uint8_t>(from, at<std::uint8_t>(kGroupFields, "kind")) != kGroupKind)
    return std::unexpected(DropReason::wrong_kind);
  const auto bytes = datagram.subspan(kGroupHeaderBytes);
  if (bytes.size() > kGroupBytesMost ||
      load<std::uint32_t>(from, at<std::uint32_t>(kGroupFields, "bytes")) != bytes.size())
    return std::unexpected(DropReason::wrong_length);
  if (load<std::uint32_t>(from, kGroupChecksum) != checksum_of_group(datagram))
    return std::unexpected(DropReason::wrong_checksum);
  GroupDatagram found;
  found.flags = load<std::uint16_t>(from, at<std::uint16_t>(kGroupFields, "flags"));
  found.source_port = load<std::uint32_t>(from, at<std::uint32_t>(kGroupFields, "source_port"));
  found.queue_key = load<std::uint32_t>(from, at<std::uint32_t>(kGroupFields, "queue_key"));
  found.group = load<std::array<std::uint8_t, 16>>(from, at<std::array<std::uint8_t, 16>>(kGroupFields, "group"));
  found.imm = load<std::uint32_t>(from, at<std::uint32_t>(kGroupFields, "imm"));
  found.bytes = bytes;
  if ((found.flags & ~kGroupFlags) != 0) return std::unexpected(DropReason::reserved_not_zero);
  if (found.source_port > PairPort::kNumberMost) return std::unexpected(DropReason::bad_record);
  return found;
}

void encode_group(const GroupDatagram& datagram, std::span<const iovec> pieces, std::uint32_t size, std::byte* to) {
  store(to, at<std::uint8_t>(kGroupFields, "version"), kVersion);
  store(to, at<std::uint8_t>(kGroupFields, "kind"), kGroupKind);
  store(to, at<std::uint16_t>(kGroupFields, "flags"), datagram.flags);
  store(to, at<std::uint32_t>(kGroupFields, "source_port"), datagram.source_port);
  store(to, at<std::uint32_t>(kGroupFields, "queue_key"), datagram.queue_key);
  store(to, at<std::array<std::uint8_t, 16>>(kGroupFields, "group"), datagram.group);
  store(to, at<std::uint32_t>(kGroupFields, "imm"), datagram.imm);
  store(to, at<std::uint32_t>(kGroupFields, "bytes"), size);
  store(to, kGroupChecksum, std::uint32_t{0});
  Checksum checksum;
  checksum.add(std::span(to, kGroupHeaderBytes));
  checksum.add(pieces);
  store(to, kGroupChecksum, checksum.value());
}

}  // namespace fairlead::wire
