#pragma once
// Two transfer machines for tests of start and stop, deadlines and delivery, over each path.

#include <gtest/gtest.h>

#include "tests/net_pair.hpp"

namespace fairlead::tests {

class NetDelivery : public NetPair {
 protected:
  static Instant in(Duration time) { return Instant::clock::now() + time; }
};

}  // namespace fairlead::tests
