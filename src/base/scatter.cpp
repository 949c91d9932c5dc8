#include "base/scatter.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/ensure.hpp"

namespace fairlead::base {
namespace {

// A position in a list that only moves forward.
class Cursor {
 public:
  Cursor(std::span<const iovec> memory, std::uint64_t offset) noexcept : memory_(memory) {
    while (index_ < memory_.size() && offset >= memory_[index_].iov_len) offset -= memory_[index_++].iov_len;
    within_ = offset;
  }

  std::span<std::byte> rest_of_piece() const noexcept {
    if (index_ >= memory_.size()) return {};
    const iovec& piece = memory_[index_];
    return {static_cast<std::byte*>(piece.iov_base) + within_, piece.iov_len - within_};
  }

  void advance(std::uint64_t bytes) noexcept {
    within_ += bytes;
    while (index_ < memory_.size() && within_ >= memory_[index_].iov_len) within_ -= memory_[index_++].iov_len;
  }

 private:
  std::span<const iovec> memory_;
  std::size_t index_ = 0;
  std::uint64_t within_ = 0;
};

template <typename Word>
bool store_word(std::byte* to, const std::byte* from, std::uint64_t size) noexcept {
  if (size != sizeof(Word) || reinterpret_cast<std::uintptr_t>(to) % sizeof(Word) != 0) return false;
  Word word;
  std::memcpy(&word, from, sizeof word);
  std::atomic_ref(*reinterpret_cast<Word*>(to)).store(word, std::memory_order_release);
  return true;
}

}  // namespace

void scatter_write(std::span<const iovec> memory, std::uint64_t offset, std::span<const std::byte> bytes) noexcept {
  Cursor to(memory, offset);
  while (!bytes.empty()) {
    const auto room = to.rest_of_piece();
    ENSURE(!room.empty(), "{} bytes lie behind the end of the memory", bytes.size());
    const std::size_t step = std::min(room.size(), bytes.size());
    std::memcpy(room.data(), bytes.data(), step);
    bytes = bytes.subspan(step);
    to.advance(step);
  }
}

void scatter_copy(std::span<const iovec> to, std::uint64_t to_offset, std::span<const iovec> from,
                  std::uint64_t length) noexcept {
  Cursor source(from, 0);
  while (length > 0) {
    const auto piece = source.rest_of_piece();
    ENSURE(!piece.empty(), "{} bytes lie behind the end of the source", length);
    const std::uint64_t step = std::min<std::uint64_t>(piece.size(), length);
    // Sender and receiver may name overlapping memory of one process: the result is their concern, but must not be
    // undefined behaviour.
    Cursor target(to, to_offset);
    std::uint64_t done = 0;
    while (done < step) {
      const auto room = target.rest_of_piece();
      ENSURE(!room.empty(), "{} bytes lie behind the end of the memory", step - done);
      const std::uint64_t part = std::min<std::uint64_t>(room.size(), step - done);
      std::memmove(room.data(), piece.data() + done, part);
      done += part;
      target.advance(part);
    }
    to_offset += step;
    length -= step;
    source.advance(step);
  }
}

std::span<const iovec> scatter_part(std::span<const iovec> memory, std::uint64_t offset, std::uint64_t length,
                                    std::span<iovec> out) noexcept {
  std::size_t count = 0;
  for (Cursor at(memory, offset); length > 0; ++count) {
    const auto piece = at.rest_of_piece();
    ENSURE(!piece.empty() && count < out.size(), "{} bytes lie behind the end of a list", length);
    const std::uint64_t step = std::min<std::uint64_t>(piece.size(), length);
    out[count] = {piece.data(), step};
    length -= step;
    at.advance(step);
  }
  return out.first(count);
}

void scatter_store(std::byte* to, std::span<const iovec> pieces, std::uint64_t size) noexcept {
  const auto* first = static_cast<const std::byte*>(pieces[0].iov_base);
  if (pieces[0].iov_len >= size &&
      (store_word<std::uint64_t>(to, first, size) || store_word<std::uint32_t>(to, first, size)))
    return;
  for (const iovec& piece : pieces) {
    const auto* from = static_cast<const std::byte*>(piece.iov_base);
    const std::uint64_t part = std::min<std::uint64_t>(piece.iov_len, size);
    size -= part;
    if (size != 0) {
      if (part != 0) std::memcpy(to, from, part);
      to += part;
      continue;
    }
    std::memcpy(to, from, part - 1);
    std::atomic_ref(to[part - 1]).store(from[part - 1], std::memory_order_release);
    return;
  }
}

}  // namespace fairlead::base
