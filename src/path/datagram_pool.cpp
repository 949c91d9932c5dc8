#include "path/datagram_pool.hpp"

#include <algorithm>
#include <cstring>

#include "base/ensure.hpp"

namespace fairlead::path {

DatagramPool::DatagramPool(std::uint32_t blocks)
    : bytes_(std::make_unique_for_overwrite<std::byte[]>(std::size_t{blocks} * kBlockBytes)),
      headers_(std::make_unique<Header[]>(blocks)),
      blocks_free_(blocks) {
  for (std::uint32_t index = 0; index < blocks; ++index) headers_[index].next = index + 1 < blocks ? index + 1 : kNone;
}

std::uint32_t DatagramPool::keep(const base::SocketAddress& to, std::span<const iovec> pieces, std::size_t offset,
                                 std::uint32_t size) {
  ENSURE(size <= kDatagramBytesMax, "datagram of {} bytes", size);
  const std::uint32_t blocks = blocks_for(size);
  if (blocks > blocks_free_) return kNone;

  // The blocks at the head of the free list become the datagram: cut the list after the last of them.
  const std::uint32_t name = free_;
  std::uint32_t last = name;
  for (std::uint32_t taken = 1; taken < blocks; ++taken) last = headers_[last].next;
  free_ = headers_[last].next;
  headers_[last].next = kNone;
  blocks_free_ -= blocks;
  headers_[name].to = to;
  headers_[name].size = size;

  std::uint32_t into = name, filled = 0, left = size;
  for (const iovec& piece : pieces) {
    const std::size_t skipped = std::min(offset, piece.iov_len);
    const auto* from = static_cast<const std::byte*>(piece.iov_base) + skipped;
    offset -= skipped;
    for (std::size_t rest = piece.iov_len - skipped; rest > 0 && left > 0;) {
      if (filled == kBlockBytes) {
        into = headers_[into].next;
        filled = 0;
      }
      const auto step = static_cast<std::uint32_t>(std::min<std::size_t>({rest, left, kBlockBytes - filled}));
      std::memcpy(block(into) + filled, from, step);
      from += step;
      filled += step;
      rest -= step;
      left -= step;
    }
  }
  ENSURE(left == 0, "the pieces end {} bytes before the datagram does", left);
  return name;
}

void DatagramPool::release(std::uint32_t name) {
  std::uint32_t last = name;
  while (headers_[last].next != kNone) last = headers_[last].next;
  headers_[last].next = free_;
  free_ = name;
  blocks_free_ += blocks_for(headers_[name].size);
}

std::byte& DatagramPool::byte(std::uint32_t name, std::uint32_t at) {
  ENSURE(at < headers_[name].size, "byte {} of a datagram of {}", at, headers_[name].size);
  for (; at >= kBlockBytes; at -= kBlockBytes) name = headers_[name].next;
  return block(name)[at];
}

std::span<const iovec> DatagramPool::pieces(std::uint32_t name) {
  std::size_t count = 0;
  std::uint32_t left = headers_[name].size;
  for (std::uint32_t index = name; index != kNone; index = headers_[index].next) {
    const std::uint32_t step = std::min(left, kBlockBytes);
    pieces_[count++] = {block(index), step};
    left -= step;
  }
  return std::span(pieces_).first(count);
}

}  // namespace fairlead::path
