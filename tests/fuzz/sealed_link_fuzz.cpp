// Links whose sessions are sealed: what is changed, repeated or turned back on the way is not taken.

#include "tests/fuzz/link_pair.hpp"

namespace {

struct Sealed : fairlead::fuzz::LinkPair {
  Sealed() : LinkPair(true) {}
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fairlead::fuzz::play<Sealed>(data, size, 1024);
}
