#pragma once
// Bytes that are wiped on destruction. Every key, and everything a key is derived from, is a Secret.

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include <string.h>

namespace fairlead::seal {

template <std::size_t kBytes>
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::span<const std::byte, kBytes> bytes) { std::ranges::copy(bytes, bytes_.begin()); }
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  ~Secret() { ::explicit_bzero(bytes_.data(), kBytes); }

  static constexpr std::size_t size() { return kBytes; }
  std::span<const std::byte, kBytes> bytes() const { return bytes_; }
  std::span<std::byte, kBytes> bytes() { return bytes_; }
  const unsigned char* raw() const { return reinterpret_cast<const unsigned char*>(bytes_.data()); }
  unsigned char* raw() { return reinterpret_cast<unsigned char*>(bytes_.data()); }

 private:
  std::array<std::byte, kBytes> bytes_{};
};

using Key = Secret<32>;                       // X25519, pre-shared or cipher key
using PublicKey = std::array<std::byte, 32>;  // X25519

}  // namespace fairlead::seal
