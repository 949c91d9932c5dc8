#include "link/token_source.hpp"

#include <bit>

namespace fairlead::link {
namespace {

struct Sip {
  std::uint64_t a, b, c, d;

  void round() {
    a += b;
    c += d;
    b = std::rotl(b, 13) ^ a;
    d = std::rotl(d, 16) ^ c;
    a = std::rotl(a, 32);
    c += b;
    a += d;
    b = std::rotl(b, 17) ^ c;
    d = std::rotl(d, 21) ^ a;
    c = std::rotl(c, 32);
  }

  void absorb(std::uint64_t word) {
    d ^= word;
    round();
    round();
    a ^= word;
  }
};

}  // namespace

std::uint64_t TokenSource::next() {
  // The four constants spell the algorithm's initial state.
  Sip sip{key0_ ^ 0x736f6d6570736575, key1_ ^ 0x646f72616e646f6d, key0_ ^ 0x6c7967656e657261,
          key1_ ^ 0x7465646279746573};
  sip.absorb(counter_++);
  sip.absorb(std::uint64_t{8} << 56);  // the length of the input, in the last word
  sip.c ^= 0xff;
  for (int i = 0; i < 4; ++i) sip.round();
  return sip.a ^ sip.b ^ sip.c ^ sip.d;
}

}  // namespace fairlead::link
