// Encrypting links: changed, replayed and reflected datagrams are refused.

#include "tests/fuzz/link_pair.hpp"

namespace {

struct Sealed : fairlead::fuzz::LinkPair {
  Sealed() : LinkPair(true) {}
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fairlead::fuzz::play<Sealed>(data, size, 1024);
}
