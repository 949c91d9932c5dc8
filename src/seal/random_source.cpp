#include "seal/random_source.hpp"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>

#include "base/ensure.hpp"
#include "seal/primitives.hpp"

namespace fairlead::seal {

RandomSource RandomSource::of_seed(std::uint64_t seed) {
  RandomSource source;
  source.seed_ = seed;
  return source;
}

void RandomSource::fill(std::span<std::byte> bytes) {
  if (seed_) {
    while (!bytes.empty()) {
      const Hash block = sha256({std::as_bytes(std::span(&*seed_, 1)), std::as_bytes(std::span(&counter_, 1))});
      ++counter_;
      const std::size_t length = std::min(bytes.size(), block.size());
      std::copy_n(block.begin(), length, bytes.begin());
      bytes = bytes.subspan(length);
    }
    return;
  }
  while (!bytes.empty()) {
    const ssize_t length = ::getrandom(bytes.data(), bytes.size(), 0);
    ENSURE(length > 0 || errno == EINTR, "the kernel gives no random bytes (errno {})", errno);
    if (length > 0) bytes = bytes.subspan(static_cast<std::size_t>(length));
  }
}

}  // namespace fairlead::seal
