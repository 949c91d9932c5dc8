#pragma once
// The layout of all headers: one table of fields per kind, little-endian. The compiler checks that there is no hole and
// no overlap. Encoding and decoding look offsets up here by name, and so may a dissector.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace fairlead::wire {

struct Field {
  std::string_view name;
  std::uint16_t offset;
  std::uint16_t size;
};

/// The first bytes of every datagram.
inline constexpr std::array kSegmentFields{
    Field{"version", 0, 1},     Field{"kind", 1, 1},        Field{"flags", 2, 1},      Field{"slot_high", 3, 1},
    Field{"slot_low", 4, 2},    Field{"credits", 6, 2},     Field{"token", 8, 8},      Field{"sequence", 16, 4},
    Field{"ack", 20, 4},        Field{"ack_bitmap", 24, 8}, Field{"timestamp", 32, 4}, Field{"echo", 36, 4},
    Field{"echo_delay", 40, 4}, Field{"checksum", 44, 4},
};

/// Payload of hello and hello_ack.
inline constexpr std::array kHelloFields{
    Field{"epoch", 0, 8},
    Field{"token", 8, 8},
    Field{"window_bytes", 16, 8},
    Field{"initial_sequence", 24, 4},
    Field{"datagram_size_max", 28, 4},
    Field{"window_segments", 32, 4},
    Field{"reassembly_slots", 36, 4},
    Field{"ack_after", 40, 4},
    Field{"slot", 44, 4},
};

/// Payload of hello_retry.
inline constexpr std::array kRetryFields{
    Field{"cookie", 0, 8},
};

/// Payload of hello_refused.
inline constexpr std::array kRefusedFields{
    Field{"reason", 0, 8},
};

/// The first bytes of a sealed hello's payload; the first handshake message follows.
inline constexpr std::array kSealedHelloFields{
    Field{"token", 0, 8},
    Field{"slot", 8, 4},
    Field{"reserved", 12, 4},
};

/// Follows the hello inside a sealed hello and its answer.
inline constexpr std::array kSealedInnerFields{
    Field{"session", 0, 8},
};

/// In the payload of data: before each whole message, and before each chunk.
inline constexpr std::array kRecordFields{
    Field{"kind", 0, 1},  Field{"operation", 1, 1}, Field{"status", 2, 1},      Field{"reserved", 3, 1},
    Field{"flags", 4, 2}, Field{"bytes", 6, 2},     Field{"source_port", 8, 4}, Field{"target_port", 12, 4},
    Field{"key", 16, 8},  Field{"cookie", 24, 8},   Field{"offset", 32, 8},     Field{"a", 40, 8},
};

/// Follows the record of a chunk.
inline constexpr std::array kChunkFields{
    Field{"message", 0, 4},
    Field{"slot", 4, 4},
    Field{"size", 8, 8},
    Field{"chunk_offset", 16, 8},
};

/// The first bytes of a part's payload.
inline constexpr std::array kPartFields{
    Field{"index", 0, 2},
    Field{"count", 2, 2},
    Field{"whole_bytes", 4, 4},
};

/// The header of a datagram to a group, in place of a segment's.
inline constexpr std::array kGroupFields{
    Field{"version", 0, 1},  Field{"kind", 1, 1},        Field{"flags", 2, 2},
    Field{"checksum", 4, 4}, Field{"source_port", 8, 4}, Field{"queue_key", 12, 4},
    Field{"group", 16, 16},  Field{"imm", 32, 4},        Field{"bytes", 36, 4},
};

constexpr std::size_t size_of(std::span<const Field> fields) {
  return fields.back().offset + fields.back().size;
}

/// Returns whether each field begins where the previous one ends, at a multiple of its own size.
constexpr bool is_dense(std::span<const Field> fields) {
  std::size_t end = 0;
  for (const Field& field : fields) {
    if (field.offset != end || field.size == 0 || field.offset % field.size != 0) return false;
    end += field.size;
  }
  return true;
}

inline constexpr std::size_t kSegmentHeaderBytes = 48;
inline constexpr std::size_t kHelloBytes = 48;
inline constexpr std::size_t kRetryBytes = 8;
inline constexpr std::size_t kRefusedBytes = 8;
inline constexpr std::size_t kSealedHelloBytes = 16;
inline constexpr std::size_t kSealedInnerBytes = kHelloBytes + 8;
inline constexpr std::size_t kSealedHandshakeMost = 256;  // one handshake message, in whatever segment
inline constexpr std::size_t kRecordBytes = 48;
inline constexpr std::size_t kChunkBytes = 24;
inline constexpr std::size_t kPartBytes = 8;
inline constexpr std::size_t kRecordAlign = 8;
inline constexpr std::size_t kGroupHeaderBytes = 40;

static_assert(is_dense(kSegmentFields) && size_of(kSegmentFields) == kSegmentHeaderBytes);
static_assert(is_dense(kHelloFields) && size_of(kHelloFields) == kHelloBytes);
static_assert(is_dense(kRetryFields) && size_of(kRetryFields) == kRetryBytes && kRetryBytes < kHelloBytes);
static_assert(is_dense(kRefusedFields) && size_of(kRefusedFields) == kRefusedBytes && kRefusedBytes < kHelloBytes);
static_assert(is_dense(kSealedHelloFields) && size_of(kSealedHelloFields) == kSealedHelloBytes);
static_assert(is_dense(kSealedInnerFields) && size_of(kSealedInnerFields) == kSealedInnerBytes - kHelloBytes);
static_assert(is_dense(kRecordFields) && size_of(kRecordFields) == kRecordBytes);
static_assert(is_dense(kChunkFields) && size_of(kChunkFields) == kChunkBytes);
static_assert(is_dense(kPartFields) && size_of(kPartFields) == kPartBytes);
static_assert(is_dense(kGroupFields) && size_of(kGroupFields) == kGroupHeaderBytes);

/// Returns the offset of the field `name`, which has to hold a T; a wrong name or width does not compile.
template <typename T>
consteval std::size_t at(std::span<const Field> fields, std::string_view name) {
  for (const Field& field : fields) {
    if (field.name == name) return field.size == sizeof(T) ? field.offset : throw "another width";
  }
  throw "no such field";
}

static_assert(std::endian::native == std::endian::little, "load and store would have to swap bytes");

template <typename T>
T load(const std::byte* from, std::size_t offset) {
  T value;
  std::memcpy(&value, from + offset, sizeof value);
  return value;
}

template <typename T>
void store(std::byte* to, std::size_t offset, T value) {
  std::memcpy(to + offset, &value, sizeof value);
}

}  // namespace fairlead::wire
