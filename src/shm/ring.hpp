#pragma once
// One direction between two local processes: records of any length in a ring of 64-byte lines, with one writer and one
// reader. Both have mapped the ring twice in a row, so each record is contiguous wherever it starts.
//
//   record: | mark: 8 | bytes: 4 | passed: 4 | body: `bytes` ... | up to a whole line
//
// The mark of the record that starts at line n is `secret + n`. The reader knows which mark comes next, so a record is
// complete as soon as its first word matches. A short record thus moves one cache line, and there is no counter to
// poll. Old bytes cannot pass for a record, because n never recurs. A payload cannot either, because its author does
// not know the secret, and no word mixes payload and mark. `passed` carries the reader's progress in the other
// direction, as an ACK rides on data.
//
// Each side reads what the other writes once, checks it, and then uses the copy.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/processor.hpp"
#include "base/thread_sanitizer.hpp"

namespace fairlead::shm {

inline constexpr std::size_t kRingLine = 64;
inline constexpr std::size_t kRingHead = 16;

/// Where a direction lies in this process.
struct RingPlace {
  std::byte* memory = nullptr;  // mapped twice in a row
  std::uint32_t lines = 0;      // a power of two
  std::uint64_t secret = 0;
};

class RingWriter {
 public:
  RingWriter() = default;
  /// `passed` is the number of lines that the reader has consumed; the reader writes it.
  RingWriter(const RingPlace& place, const std::atomic<std::uint64_t>& passed) : place_(place), passed_(&passed) {}

  /// Returns where to write a body of so many bytes, or null if there is no room.
  std::byte* reserve(std::size_t body_bytes) noexcept {
    if (lines_of(body_bytes) > free_lines()) [[unlikely]]
      return nullptr;
    return at(written_) + kRingHead;
  }
  /// Publishes the record just filled. `passed` is the position of our own reader.
  void publish(std::size_t body_bytes, std::uint64_t passed) noexcept {
    std::byte* record = at(written_);
    const std::uint32_t bytes = static_cast<std::uint32_t>(body_bytes), low = static_cast<std::uint32_t>(passed);
    __builtin_memcpy(record + 8, &bytes, sizeof bytes);
    __builtin_memcpy(record + 12, &low, sizeof low);
    // Clears the rest of a last line shorter than a word. Bytes of an old mark remain there from an earlier round; the
    // right payload before them would complete a mark.
    const std::size_t end = kRingHead + body_bytes, cut = end % kRingLine;
    if (cut != 0 && cut < sizeof(std::uint64_t)) __builtin_memset(record + end, 0, sizeof(std::uint64_t) - cut);
    base::release_unseen();
    std::atomic_ref(*reinterpret_cast<std::uint64_t*>(record))
        .store(place_.secret + written_, std::memory_order_release);
    written_ += lines_of(body_bytes);
    if (written_ / kBlockLines != wanted_block_) [[unlikely]]
      want_next_block();
  }

  /// Reads the reader's progress. Returns false if it exceeds what was written.
  bool look() noexcept {
    const std::uint64_t passed = passed_->load(std::memory_order_acquire);
    if (passed > written_) [[unlikely]]
      return false;
    if (passed > passed_seen_) passed_seen_ = passed;  // smaller if records have already reported more
    return true;
  }
  /// Returns whether look() would find more progress.
  bool has_news() const noexcept { return passed_->load(std::memory_order_relaxed) > passed_seen_; }
  /// Applies the low bits of the progress that came with a record. Ignores older values. Returns false if they are
  /// impossible.
  bool learn(std::uint32_t low) noexcept {
    const std::uint32_t more = low - static_cast<std::uint32_t>(passed_seen_);
    if (more > lines_in_use()) [[unlikely]]
      return is_old(more);
    passed_seen_ += more;
    return true;
  }

  /// Lines written since the beginning, now and after a further record; and those known to be consumed.
  std::uint64_t written() const noexcept { return written_; }
  std::uint64_t written_with(std::size_t body_bytes) const noexcept { return written_ + lines_of(body_bytes); }
  std::uint64_t passed() const noexcept { return passed_seen_; }
  /// Returns the longest body that fits now.
  std::size_t room() const noexcept {
    const std::uint64_t lines = free_lines();
    return lines == 0 ? 0 : lines * kRingLine - kRingHead;
  }

 private:
  static constexpr std::uint64_t kBlockLines = 8;

  static std::uint64_t lines_of(std::size_t body_bytes) noexcept {
    return (body_bytes + kRingHead + kRingLine - 1) / kRingLine;
  }
  std::byte* at(std::uint64_t line) const noexcept { return place_.memory + (line & (place_.lines - 1)) * kRingLine; }
  std::uint64_t lines_in_use() const noexcept { return written_ - passed_seen_; }
  std::uint64_t free_lines() const noexcept { return place_.lines - lines_in_use(); }
  /// The record may have waited in its ring while the shared counter reported more progress.
  static bool is_old(std::uint32_t more) noexcept { return -more < 1U << 31; }
  void want_next_block() noexcept;

  RingPlace place_;
  const std::atomic<std::uint64_t>* passed_ = nullptr;
  std::uint64_t written_ = 0;
  std::uint64_t passed_seen_ = 0;
  std::uint64_t wanted_block_ = 0;
};

class RingReader {
 public:
  RingReader() = default;
  /// `passed` is where this reader publishes its progress to the writer.
  RingReader(const RingPlace& place, std::atomic<std::uint64_t>& passed) : place_(place), passed_(&passed) {}

  bool has_record() const noexcept {
    if (std::atomic_ref(*reinterpret_cast<std::uint64_t*>(at(read_))).load(std::memory_order_acquire) !=
        place_.secret + read_)
      return false;
    base::acquire_unseen();
    return true;
  }

  /// Prefetches a line further on, which the writer may have filled already in a run of records.
  void want_ahead() const noexcept { __builtin_prefetch(at(read_ + kLinesAhead)); }

  struct Record {
    std::span<const std::byte> body;  // in shared memory: the other side may still write to it
    std::uint32_t passed = 0;         // low bits of the other side's reader position
  };
  /// Returns the record at the read position, after has_record(). Returns nullopt if its length is impossible.
  std::optional<Record> record() const noexcept {
    const std::byte* record = at(read_);
    std::uint32_t bytes = 0, passed = 0;
    __builtin_memcpy(&bytes, record + 8, sizeof bytes);
    __builtin_memcpy(&passed, record + 12, sizeof passed);
    asm volatile("" : "+r"(bytes), "+r"(passed));  // forces a single read: the checked value is the one used
    if (bytes > std::size_t{place_.lines} * kRingLine - kRingHead) [[unlikely]]
      return std::nullopt;
    return Record{{record + kRingHead, bytes}, passed};
  }
  /// Consumes a record of so many body bytes.
  void pass(std::size_t body_bytes) noexcept { read_ += (body_bytes + kRingHead + kRingLine - 1) / kRingLine; }

  std::uint64_t read() const noexcept { return read_; }
  std::uint64_t lines() const noexcept { return place_.lines; }
  /// Lines consumed that the writer does not know of. told() records that one of our records carried the position.
  std::uint64_t untold() const noexcept { return read_ - told_; }
  void told() noexcept { told_ = read_; }
  void tell() noexcept {
    told_ = read_;
    passed_->store(read_, std::memory_order_release);
  }

 private:
  static constexpr std::uint64_t kLinesAhead = 8;

  std::byte* at(std::uint64_t line) const noexcept { return place_.memory + (line & (place_.lines - 1)) * kRingLine; }

  RingPlace place_;
  std::atomic<std::uint64_t>* passed_ = nullptr;
  std::uint64_t read_ = 0;
  std::uint64_t told_ = 0;
};

}  // namespace fairlead::shm
