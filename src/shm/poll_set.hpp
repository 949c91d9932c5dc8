#pragma once
// Descriptors that are waited for together, each by a name.

#include <cstdint>
#include <span>

#include "base/file_descriptor.hpp"

namespace fairlead::shm {

class PollSet {
 public:
  static constexpr std::size_t kAtOnce = 32;

  /// errno tells why if it is not open then.
  void open();
  bool is_open() const noexcept { return epoll_.is_open(); }
  /// Readable when one of them is.
  int descriptor() const noexcept { return epoll_.get(); }

  bool add(int descriptor, std::uint64_t name) const;
  /// Of one that was added: whether it is waited for.
  void watch(int descriptor, std::uint64_t name, bool does) const;
  void remove(int descriptor) const;
  /// The names of those that are readable, as many as there is room for. Does not wait.
  std::span<const std::uint64_t> ready(std::span<std::uint64_t, kAtOnce> room) const;

 private:
  base::FileDescriptor epoll_;
};

}  // namespace fairlead::shm
