#pragma once
// An epoll set whose descriptors have names.

#include <cstdint>
#include <span>

#include "base/file_descriptor.hpp"

namespace fairlead::shm {

class PollSet {
 public:
  static constexpr std::size_t kAtOnce = 32;

  /// If is_open() is false afterwards, errno tells why.
  void open();
  bool is_open() const noexcept { return epoll_.is_open(); }
  /// Readable when one of the descriptors is.
  int descriptor() const noexcept { return epoll_.get(); }

  bool add(int descriptor, std::uint64_t name) const;
  /// Turns waiting for an added descriptor on or off.
  void watch(int descriptor, std::uint64_t name, bool does) const;
  void remove(int descriptor) const;
  /// Returns the names of readable descriptors, up to the room. Does not wait.
  std::span<const std::uint64_t> ready(std::span<std::uint64_t, kAtOnce> room) const;

 private:
  base::FileDescriptor epoll_;
};

}  // namespace fairlead::shm
