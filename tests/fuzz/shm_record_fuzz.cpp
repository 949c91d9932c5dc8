// The other side of a shared-memory ring knows the secret and writes anything anywhere. All reads and writes stay
// inside the mapping, and the counters of both sides stay within bounds. While the other side is honest, all records
// arrive in order.

#include <atomic>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/ensure.hpp"
#include "shm/memory.hpp"
#include "shm/ring.hpp"
#include "tests/fuzz/script.hpp"
#include "wire/shm_record.hpp"

namespace {

using namespace fairlead;

constexpr std::size_t kBytes = 4096;
constexpr std::uint64_t kSecret = 0x1234'5678'9abc'def0;

shm::Memory& memory() {
  static shm::Memory made = shm::Memory::create({.head_bytes = 4096, .ring_bytes = kBytes, .rings = 1}).value();
  return made;
}

class Pair {
 public:
  Pair(const std::uint8_t* data, std::size_t size) : script_(data, size) { std::memset(place_.memory, 0, kBytes); }

  void run() {
    while (!script_.is_over() && act()) {
      ENSURE(writer_.passed() <= writer_.written(), "{} passed of {}", writer_.passed(), writer_.written());
      ENSURE(writer_.room() <= kBytes - shm::kRingHead, "room for {}", writer_.room());
    }
  }

 private:
  /// False when the connection ends.
  bool act() {
    switch (script_.take<std::uint8_t>() % 6) {
      case 0:
        return write(script_.take<std::uint16_t>() % (kBytes + 100));
      case 1:
      case 2:
        return read();
      case 3: {
        is_honest_ = false;
        const std::size_t at = script_.take<std::uint16_t>() % (kBytes - 8);
        const auto value = script_.take<std::uint64_t>();
        std::memcpy(place_.memory + at, &value, sizeof value);
        return true;
      }
      case 4: {
        is_honest_ = false;  // writes a record at the reader's position
        const std::uint64_t mark = kSecret + reader_.read(), rest = script_.take<std::uint64_t>();
        std::byte* at = place_.memory + (reader_.read() % place_.lines) * shm::kRingLine;
        std::memcpy(at, &mark, sizeof mark);
        std::memcpy(at + sizeof mark, &rest, sizeof rest);
        return true;
      }
      default:
        if (script_.take<std::uint8_t>() % 4 == 0) {
          is_honest_ = false;
          passed_.store(script_.take<std::uint64_t>());
        } else {
          reader_.tell();
        }
        return writer_.look();
    }
  }

  bool write(std::size_t length) {
    std::byte* body = writer_.reserve(length);
    if (body == nullptr) return true;
    ENSURE(is_inside({body, length}), "{} bytes to write lie outside", length);
    for (std::size_t i = 0; i < length; ++i) body[i] = static_cast<std::byte>(written_ + i);
    writer_.publish(length, reader_.read());
    ++written_;
    return true;
  }

  bool read() {
    if (!reader_.has_record()) {
      ENSURE(!is_honest_ || read_ == written_, "record {} of {} is not there", read_, written_);
      return true;
    }
    ENSURE(!is_honest_ || read_ != written_, "a record behind {} that nobody wrote", written_);
    const auto record = reader_.record();
    if (!record) {
      ENSURE(!is_honest_, "an honest record was refused");
      return false;
    }
    ENSURE(is_inside(record->body), "{} bytes read lie outside", record->body.size());
    if (is_honest_) check(record->body);
    decode(record->body);
    reader_.pass(record->body.size());
    ++read_;
    return writer_.learn(record->passed) || !is_honest_;
  }

  void check(std::span<const std::byte> body) const {
    for (std::size_t i = 0; i < body.size(); ++i)
      ENSURE(body[i] == static_cast<std::byte>(read_ + i), "record {} differs at {}", read_, i);
  }

  /// Any body is refused as a record of the shm transport, or gives a record whose payload and header lie inside it.
  static void decode(std::span<const std::byte> body) {
    wire::ShmRecord record;
    if (!wire::decode_shm(body, record)) return;
    ENSURE(record.payload.size() <= record.message_bytes || record.kind == wire::ShmKind::next ||
               record.kind == wire::ShmKind::by_reference,
           "more than the message");
    std::span<const std::byte> rest = record.payload, message;
    while (record.kind == wire::ShmKind::batch && wire::take_batched(rest, message))
      ENSURE(message.data() + message.size() == rest.data() && rest.data() + rest.size() == body.data() + body.size(),
             "a message lies elsewhere");
    const std::size_t before = body.size() - record.payload.size();
    ENSURE(before == wire::shm_head_bytes(record.kind), "a head of {} bytes", before);
    ENSURE(record.payload.data() == body.data() + before, "the payload lies elsewhere");
    std::vector<std::byte> again(before);
    wire::encode_shm(again.data(), record.kind, record.envelope, record.message_bytes, record.place, record.ticket);
    wire::ShmRecord same;
    again.insert(again.end(), record.payload.begin(), record.payload.end());
    ENSURE(wire::decode_shm(again, same) && same.kind == record.kind && same.message_bytes == record.message_bytes &&
               same.place == record.place && same.ticket == record.ticket && same.envelope.key == record.envelope.key &&
               same.envelope.source_port == record.envelope.source_port,
           "it is not what it was read from");
  }

  bool is_inside(std::span<const std::byte> bytes) const {
    return bytes.data() >= place_.memory && bytes.data() + bytes.size() <= place_.memory + 2 * kBytes;
  }

  fuzz::Script script_;
  std::atomic<std::uint64_t> passed_{0};
  shm::RingPlace place_{memory().ring(0), kBytes / shm::kRingLine, kSecret};
  shm::RingWriter writer_{place_, passed_};
  shm::RingReader reader_{place_, passed_};
  std::uint64_t written_ = 0, read_ = 0;
  bool is_honest_ = true;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Pair(data, size).run();
  return 0;
}
