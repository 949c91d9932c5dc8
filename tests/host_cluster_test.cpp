// Several hosts, each a network namespace with a fairleadd and four applications. Daemons are replaced and killed while
// all applications exchange messages, with lost datagrams.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "tests/child_process.hpp"
#include "tests/environment.hpp"
#include "tests/two_namespaces.hpp"

namespace fairlead::tests {
namespace {

using testing::HasSubstr;

TEST(HostCluster, OnlyTheApplicationsOfKilledDaemonsFail) {
  if (const auto fault = TwoNamespaces().set_up()) GTEST_SKIP() << *fault;
  const bool is_full = is_full_run();
  const Finished all =
      run({"env", is_full ? "REPLACEMENTS=25" : "REPLACEMENTS=0", FAIRLEAD_SOURCE_FOLDER "/scripts/host_namespaces.sh",
           is_full ? "8" : "4", is_full ? "5" : "1", "1", FAIRLEAD_COMMAND},
          std::chrono::seconds(is_full ? 400 : 110));
  EXPECT_EQ(all.exit_code, 0) << all.output << all.error_output;
  EXPECT_THAT(all.output, HasSubstr(is_full ? "3 daemons are replaced and 2 killed meanwhile"
                                            : "2 daemons are replaced and 2 killed meanwhile"));
  EXPECT_THAT(all.output,
              HasSubstr(is_full ? "bulk of 64K, 6 clients, 6 servers" : "bulk of 64K, 2 clients, 2 servers"));
  EXPECT_THAT(all.output,
              HasSubstr(is_full ? "ping of 1K, 16 clients, 16 servers" : "ping of 1K, 8 clients, 8 servers"));
}

TEST(HostCluster, ProgramsOfTwoHostsNoticeNoReplacement) {
  if (const auto fault = TwoNamespaces().set_up()) GTEST_SKIP() << *fault;
  if (!is_installed("ib_write_bw")) GTEST_SKIP() << "ib_write_bw is missing";
  const Finished all =
      run({FAIRLEAD_SOURCE_FOLDER "/scripts/two_hosts.sh", "150", FAIRLEAD_COMMAND}, std::chrono::seconds(110));
  EXPECT_EQ(all.exit_code, 0) << all.output << all.error_output;
  EXPECT_THAT(all.output, HasSubstr("replacements, and no program has noticed"));
  EXPECT_THAT(all.output, HasSubstr("all verified"));
}

}  // namespace
}  // namespace fairlead::tests
