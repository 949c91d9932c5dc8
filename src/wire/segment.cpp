#include "wire/segment.hpp"

#include <array>

#include "wire/checksum.hpp"
#include "wire/hello.hpp"
#include "wire/part.hpp"
#include "wire/record.hpp"

namespace fairlead::wire {
namespace {

constexpr std::size_t kChecksum = at<std::uint32_t>(kSegmentFields, "checksum");

/// Checksum of the whole datagram, with the checksum field as zero.
[[gnu::always_inline]] inline std::uint32_t checksum_of(std::span<const std::byte> datagram) {
  std::array<std::byte, kSegmentHeaderBytes> header;
  std::memcpy(header.data(), datagram.data(), header.size());
  store(header.data(), kChecksum, std::uint32_t{0});
  Checksum checksum;
  checksum.add(header);
  checksum.add(datagram.subspan(header.size()));
  return checksum.value();
}

bool is_known(Kind kind) {
  return kind >= Kind::hello && kind <= Kind::rekey_answer;
}

[[gnu::always_inline]] inline bool is_right_length(Kind kind, std::size_t payload) {
  switch (kind) {
    case Kind::hello:
    case Kind::hello_ack:
      return payload == kHelloBytes;
    case Kind::hello_retry:
      return payload == kRetryBytes;
    case Kind::hello_refused:
      return payload == kRefusedBytes;
    case Kind::rekey:
    case Kind::rekey_answer:
      return payload <= kSealedHandshakeMost;
    case Kind::data:
      return payload >= kRecordBytes;
    case Kind::ack:
      return payload % sizeof(std::uint64_t) == 0 && payload <= kAckWordsMax * sizeof(std::uint64_t);
    case Kind::reset:
    case Kind::close:
    case Kind::probe_answer:
      return payload == 0;
    case Kind::probe:
      return payload <= kDatagramSizeMost - kSegmentHeaderBytes;
    case Kind::part:
      return payload > kPartBytes;
  }
  return false;
}

bool is_hello(Kind kind) {
  return kind == Kind::hello || kind == Kind::hello_ack;
}
bool may_be_sealed(Kind kind) {
  return kind != Kind::reset && kind != Kind::hello_retry && kind != Kind::hello_refused;
}
bool may_be_clear(Kind kind) {
  return kind != Kind::rekey && kind != Kind::rekey_answer;
}

[[gnu::always_inline]] inline bool is_right_checksum(std::span<const std::byte> datagram) {
  return load<std::uint32_t>(datagram.data(), kChecksum) == checksum_of(datagram);
}

[[gnu::always_inline]] inline bool is_possible_payload(Kind kind, std::span<const std::byte> payload) {
  if (kind == Kind::data) return is_run_of_records(payload);
  if (kind == Kind::part) return is_possible(read_part(payload));
  return !is_hello(kind) || is_possible(read_hello(payload));
}
DropReason reason_of(Kind kind) {
  return is_hello(kind) ? DropReason::bad_hello : DropReason::bad_record;
}

Header read_header(const std::byte* from) {
  Header header;
  header.kind = load<Kind>(from, at<std::uint8_t>(kSegmentFields, "kind"));
  header.flags = load<std::uint8_t>(from, at<std::uint8_t>(kSegmentFields, "flags"));
  header.slot = std::uint32_t{load<std::uint8_t>(from, at<std::uint8_t>(kSegmentFields, "slot_high"))} << 16 |
                load<std::uint16_t>(from, at<std::uint16_t>(kSegmentFields, "slot_low"));
  header.credits = load<std::uint16_t>(from, at<std::uint16_t>(kSegmentFields, "credits"));
  header.token = load<std::uint64_t>(from, at<std::uint64_t>(kSegmentFields, "token"));
  header.sequence.value = load<std::uint32_t>(from, at<std::uint32_t>(kSegmentFields, "sequence"));
  header.ack.value = load<std::uint32_t>(from, at<std::uint32_t>(kSegmentFields, "ack"));
  header.ack_bitmap = load<std::uint64_t>(from, at<std::uint64_t>(kSegmentFields, "ack_bitmap"));
  header.timestamp.value = load<std::uint32_t>(from, at<std::uint32_t>(kSegmentFields, "timestamp"));
  header.echo.value = load<std::uint32_t>(from, at<std::uint32_t>(kSegmentFields, "echo"));
  header.echo_delay.value = load<std::uint32_t>(from, at<std::uint32_t>(kSegmentFields, "echo_delay"));
  return header;
}

/// Checks what is in the clear of a sealed datagram. Hellos and their answers are whole handshake messages and have a
/// checksum. All others have a number in its place, and a tag.
[[gnu::noinline]] std::optional<DropReason> check_sealed(const Frame& frame, std::span<const std::byte> datagram) {
  const Header& header = frame.header;
  const std::size_t size = frame.payload.size();
  if (!may_be_sealed(header.kind)) return DropReason::reserved_not_zero;
  if (is_hello(header.kind)) {
    if (size <= kSealedHelloBytes || size > kSealedHandshakeMost) return DropReason::wrong_length;
    if (!is_right_checksum(datagram)) return DropReason::wrong_checksum;
    if ((header.flags & Flags::kEpoch) != 0) return DropReason::reserved_not_zero;
  } else if (size < kTagBytes || !is_right_length(header.kind, size - kTagBytes)) {
    return DropReason::wrong_length;
  }
  if (header.token == 0 && header.kind != Kind::hello) return DropReason::bad_token;
  return std::nullopt;
}

}  // namespace

std::expected<Frame, DropReason> decode(std::span<const std::byte> datagram) {
  if (datagram.size() < kSegmentHeaderBytes) return std::unexpected(DropReason::too_short);
  const std::byte* from = datagram.data();
  if (load<std::uint8_t>(from, at<std::uint8_t>(kSegmentFields, "version")) != kVersion) {
    return std::unexpected(DropReason::wrong_version);
  }
  const Frame frame{read_header(from), datagram.subspan(kSegmentHeaderBytes)};
  const Header& header = frame.header;
  if (!is_known(header.kind)) return std::unexpected(DropReason::wrong_kind);
  if (frame.is_sealed()) [[unlikely]] {
    if (const auto reason = check_sealed(frame, datagram)) return std::unexpected(*reason);
    return frame;
  }
  if (!is_right_length(header.kind, frame.payload.size())) return std::unexpected(DropReason::wrong_length);
  if (!is_right_checksum(datagram)) return std::unexpected(DropReason::wrong_checksum);
  if ((header.flags & ~Flags::kAll) != 0 || !may_be_clear(header.kind)) {
    return std::unexpected(DropReason::reserved_not_zero);
  }
  if (header.token == 0 && header.kind != Kind::hello) return std::unexpected(DropReason::bad_token);
  if (!is_possible_payload(header.kind, frame.payload)) return std::unexpected(reason_of(header.kind));
  return frame;
}

std::optional<DropReason> check_payload(Kind kind, std::span<const std::byte> payload) {
  return is_possible_payload(kind, payload) ? std::nullopt : std::optional(reason_of(kind));
}

void encode(const Header& header, std::byte* to) {
  store(to, at<std::uint8_t>(kSegmentFields, "version"), kVersion);
  store(to, at<std::uint8_t>(kSegmentFields, "kind"), header.kind);
  store(to, at<std::uint8_t>(kSegmentFields, "flags"), header.flags);
  store(to, at<std::uint8_t>(kSegmentFields, "slot_high"), static_cast<std::uint8_t>(header.slot >> 16));
  store(to, at<std::uint16_t>(kSegmentFields, "slot_low"), static_cast<std::uint16_t>(header.slot));
  store(to, at<std::uint16_t>(kSegmentFields, "credits"), header.credits);
  store(to, at<std::uint64_t>(kSegmentFields, "token"), header.token);
  store(to, at<std::uint32_t>(kSegmentFields, "sequence"), header.sequence.value);
  store(to, at<std::uint32_t>(kSegmentFields, "ack"), header.ack.value);
  store(to, at<std::uint64_t>(kSegmentFields, "ack_bitmap"), header.ack_bitmap);
  store(to, at<std::uint32_t>(kSegmentFields, "timestamp"), header.timestamp.value);
  store(to, at<std::uint32_t>(kSegmentFields, "echo"), header.echo.value);
  store(to, at<std::uint32_t>(kSegmentFields, "echo_delay"), header.echo_delay.value);
  store(to, kChecksum, std::uint32_t{0});
}

void add_checksum(std::span<std::byte> head, std::span<const iovec> rest) {
  store(head.data(), kChecksum, std::uint32_t{0});
  Checksum checksum;
  checksum.add(head);
  checksum.add(rest);
  store(head.data(), kChecksum, checksum.value());
}

void mark_sealed(std::byte* header, std::uint8_t epoch, std::uint32_t number) {
  constexpr std::size_t kFlags = at<std::uint8_t>(kSegmentFields, "flags");
  const unsigned bits = Flags::kSealed | ((unsigned{epoch} << Flags::kEpochShift) & Flags::kEpoch);
  store(header, kFlags, static_cast<std::uint8_t>((load<std::uint8_t>(header, kFlags) & Flags::kAll) | bits));
  store(header, kChecksum, number);
}

std::uint32_t number_of(std::span<const std::byte> header) {
  return load<std::uint32_t>(header.data(), kChecksum);
}

}  // namespace fairlead::wire
