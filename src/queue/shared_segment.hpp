#pragma once
// A segment shared by processes: sealed anonymous memory behind a descriptor, mapped by each at its own address. The
// seal makes its length trustworthy: nobody can shrink it while another process reads.

#include <cstddef>
#include <span>

#include <fairlead/error.hpp>

namespace fairlead::queue {

class SharedSegment {
 public:
  /// Creates zeroed memory, mapped and touched, so that the first lap takes no page faults.
  static Result<SharedSegment> create(std::size_t bytes);
  /// Maps a segment that another process created. Borrows the descriptor; refuses memory that is not sealed.
  static Result<SharedSegment> map(int descriptor);

  SharedSegment() = default;
  SharedSegment(SharedSegment&& other) noexcept;
  SharedSegment& operator=(SharedSegment&& other) noexcept;
  ~SharedSegment();

  std::span<std::byte> span() const noexcept { return {memory_, bytes_}; }
  int descriptor() const noexcept { return descriptor_; }

 private:
  SharedSegment(std::byte* memory, std::size_t bytes, int descriptor) noexcept
      : memory_(memory), bytes_(bytes), descriptor_(descriptor) {}

  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
  int descriptor_ = -1;
};

}  // namespace fairlead::queue
