#include "engine/unknown_variables.hpp"

#include <gmock/gmock.h>

namespace fairlead::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Environment = std::vector<std::string_view>;

TEST(UnknownVariables, WhatIsReadAndWhatIsNotOursIsNotTold) {
  EXPECT_THAT(unknown_variables(Environment{"FAIRLEAD_PATH=udp", "FAIRLEAD_GIVE_UP_AFTER=1", "FAIRLEAD_DEVICE=",
                                            "FAIRLEAD_DEVICES=2", "FAIRLEAD_EXPLAIN=1", "FAIRLEAD_PERSONALITY=ib",
                                            "FAIRLEAD_AM_RANK=1", "FAIRLEAD_TEST_SEED=1", "FAIR=1", "PATH=/bin"}),
              IsEmpty());
}

TEST(UnknownVariables, AMisspeltOneIsToldWithItsNearest) {
  EXPECT_THAT(unknown_variables(Environment{"FAIRLEAD_GIVEUP=1", "FAIRLEAD_FLIGT=stderr", "FAIRLEAD_PTAH=udp"}),
              ElementsAre(HasSubstr("FAIRLEAD_GIVEUP sets nothing: did you mean FAIRLEAD_GIVE_UP_AFTER?"),
                          HasSubstr("did you mean FAIRLEAD_FLIGHT?"), HasSubstr("did you mean FAIRLEAD_PATH?")));
}

// Kubernetes sets them in every container of a namespace with a service called "fairlead", or "fairlead-path".
TEST(UnknownVariables, WhatKubernetesSetsIsNotTold) {
  EXPECT_THAT(unknown_variables(Environment{
                  "FAIRLEAD_PORT=udp://10.0.0.1:20480", "FAIRLEAD_SERVICE_HOST=10.0.0.1", "FAIRLEAD_SERVICE_PORT=20480",
                  "FAIRLEAD_SERVICE_PORT_UDP=20480", "FAIRLEAD_PORT_20480_UDP=udp://10.0.0.1:20480",
                  "FAIRLEAD_PORT_20480_UDP_PROTO=udp", "FAIRLEAD_PORT_20480_UDP_PORT=20480",
                  "FAIRLEAD_PORT_20480_UDP_ADDR=10.0.0.1", "FAIRLEAD_PATH_PORT=tcp://10.0.0.1:1",
                  "FAIRLEAD_PATH_SERVICE_HOST=10.0.0.1", "FAIRLEAD_PATH_PORT_1_TCP_ADDR=10.0.0.1"}),
              IsEmpty());
  EXPECT_THAT(
      unknown_variables(Environment{"FAIRLEAD_PORT=20480", "FAIRLEAD_PORT_20480=1", "FAIRLEAD_PORT_FIRS=20480"}),
      testing::SizeIs(3));
}

TEST(UnknownVariables, OneThatIsLikeNothingIsToldAlone) {
  EXPECT_THAT(unknown_variables(Environment{"FAIRLEAD_QQQQQQQQQ=1"}),
              ElementsAre("FAIRLEAD_QQQQQQQQQ sets nothing (`fairlead options` lists the settings)"));
}

TEST(UnknownVariables, LongOnesAndControlCharactersDoNoHarm) {
  const std::string vast = "FAIRLEAD_" + std::string(100'000, 'X') + "=1";
  EXPECT_THAT(unknown_variables(Environment{vast, "FAIRLEAD_\n\x1b[31m", "FAIRLEAD_"}), testing::SizeIs(3));
  EXPECT_THAT(unknown_variables(Environment{"FAIRLEAD_\x1b[31m"})[0], testing::Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace fairlead::engine
