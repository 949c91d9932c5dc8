// Copies between buffers of different segmentation over each path, as Motr's test `buf_copy` requires. The simulator
// makes the same ones (sim/net_copy_test.cpp).

#include "net/copy_for_tests.hpp"
#include "tests/net_pair.hpp"

namespace fairlead::tests {
namespace {

/// The segments are those of the shape, then long enough for several datagrams.
constexpr std::array kScales{1U, 700U};

class NetCopy : public NetPair {
 protected:
  void copy(const net::CopyShape& shape) {
    for (const auto scale : kScales) {
      for (const auto kind : net::kCopyKinds) {
        SCOPED_TRACE(testing::Message() << "kind " << int(kind) << ", scale " << scale);
        net::Copy copy(shape, scale);
        copy.begin(kind, *domain_, near(), *domain_, far());
        if (HasFatalFailure()) return;
        copy.record().wait_for(net::Copy::kEvents);
        copy.expect_done();
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Paths, NetCopy, ::testing::ValuesIn(net_paths()),
                         [](const auto& instance) { return instance.param.name; });

TEST_P(NetCopy, OneToOne) {
  copy(net::kCopyShapes[0]);
}

TEST_P(NetCopy, OneToFew) {
  copy(net::kCopyShapes[1]);
}

TEST_P(NetCopy, FewToOne) {
  copy(net::kCopyShapes[2]);
}

TEST_P(NetCopy, FewToFew) {
  copy(net::kCopyShapes[3]);
}

TEST_P(NetCopy, SmallToLarge) {
  copy(net::kCopyShapes[4]);
}

TEST_P(NetCopy, LargeToSmall) {
  copy(net::kCopyShapes[5]);
}

TEST_P(NetCopy, BytesToOne) {
  copy(net::kCopyShapes[6]);
}

TEST_P(NetCopy, OneToBytes) {
  copy(net::kCopyShapes[7]);
}

TEST_P(NetCopy, EachIntoTwo) {
  copy(net::kCopyShapes[8]);
}

TEST_P(NetCopy, AcrossTheEnds) {
  copy(net::kCopyShapes[9]);
}

}  // namespace
}  // namespace fairlead::tests
