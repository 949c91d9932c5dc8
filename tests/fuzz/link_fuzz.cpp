// Links without encryption: changed datagrams may have any effect except harm.

#include "tests/fuzz/link_pair.hpp"

namespace {

struct Clear : fairlead::fuzz::LinkPair {
  Clear() : LinkPair(false) {}
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fairlead::fuzz::play<Clear>(data, size, 4096);
}
