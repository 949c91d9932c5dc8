#include "base/sip_hash.hpp"

#include <bit>
#include <cstring>

namespace fairlead::base {

static_assert(std::endian::native == std::endian::little, "words would have to be swapped");

// The four constants are the algorithm's.
SipHash::SipHash(const SipKey& key) noexcept
    : a_(key.low ^ 0x736f6d6570736575),
      b_(key.high ^ 0x646f72616e646f6d),
      c_(key.low ^ 0x6c7967656e657261),
      d_(key.high ^ 0x7465646279746573) {}

void SipHash::round() noexcept {
  a_ += b_;
  c_ += d_;
  b_ = std::rotl(b_, 13) ^ a_;
  d_ = std::rotl(d_, 16) ^ c_;
  a_ = std::rotl(a_, 32);
  c_ += b_;
  a_ += d_;
  b_ = std::rotl(b_, 17) ^ c_;
  d_ = std::rotl(d_, 21) ^ a_;
  c_ = std::rotl(c_, 32);
}

SipHash& SipHash::add(std::uint64_t word) noexcept {
  d_ ^= word;
  round();
  round();
  a_ ^= word;
  length_ += sizeof word;
  return *this;
}

SipHash& SipHash::add(std::span<const std::byte> bytes) noexcept {
  for (; bytes.size() >= sizeof(std::uint64_t); bytes = bytes.subspan(sizeof(std::uint64_t))) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    add(word);
  }
  if (!bytes.empty()) std::memcpy(&tail_, bytes.data(), bytes.size());
  length_ += bytes.size();
  return *this;
}

std::uint64_t SipHash::value() noexcept {
  add(length_ << 56 | tail_);  // lowest byte of the length
  c_ ^= 0xff;
  for (int i = 0; i < 4; ++i) round();
  return a_ ^ b_ ^ c_ ^ d_;
}

}  // namespace fairlead::base
