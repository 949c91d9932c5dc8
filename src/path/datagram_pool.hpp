#pragma once
// A fixed pool of datagrams that wait. Its memory is divided into blocks of 2 KiB, so that small datagrams take little
// space and none needs contiguous memory. A full pool refuses; it never grows.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <sys/uio.h>

#include "base/socket_address.hpp"

namespace fairlead::path {

class DatagramPool {
 public:
  static constexpr std::uint32_t kNone = ~0U;
  static constexpr std::uint32_t kDatagramBytesMax = 65'536;
  static constexpr std::uint32_t kBlockBytes = 2048;

  /// Memory is touched only as it is used, the lowest addresses first.
  explicit DatagramPool(std::uint32_t blocks);

  /// Copies a datagram of `size` bytes, at most kDatagramBytesMax, that begins `offset` bytes into `pieces`. Returns
  /// its name, or kNone if there is no room.
  std::uint32_t keep(const base::SocketAddress& to, std::span<const iovec> pieces, std::size_t offset,
                     std::uint32_t size);
  void release(std::uint32_t name);

  const base::SocketAddress& to(std::uint32_t name) const { return headers_[name].to; }
  std::uint32_t size(std::uint32_t name) const { return headers_[name].size; }
  std::byte& byte(std::uint32_t name, std::uint32_t at);
  /// Returns the datagram's bytes as a scatter list, valid until the next call.
  std::span<const iovec> pieces(std::uint32_t name);

  std::uint32_t blocks_free() const { return blocks_free_; }

 private:
  // A datagram is named by its first block.
  struct Header {
    base::SocketAddress to;
    std::uint32_t size = 0;
    std::uint32_t next = kNone;  // next block of the same datagram, or next free block
  };

  static std::uint32_t blocks_for(std::uint32_t size) { return size == 0 ? 1 : (size + kBlockBytes - 1) / kBlockBytes; }
  std::byte* block(std::uint32_t index) { return bytes_.get() + std::size_t{index} * kBlockBytes; }

  std::unique_ptr<std::byte[]> bytes_;
  std::unique_ptr<Header[]> headers_;
  std::uint32_t free_ = 0;
  std::uint32_t blocks_free_;
  std::array<iovec, kDatagramBytesMax / kBlockBytes> pieces_{};
};

}  // namespace fairlead::path
