#include "link/answer_budget.hpp"

#include <gtest/gtest.h>

namespace fairlead::link {
namespace {

using namespace std::chrono_literals;

base::SocketAddress host(std::uint32_t number, std::uint16_t port = 1) {
  base::SocketAddress address;
  address.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 0};
  address.ip[13] = static_cast<std::uint8_t>(number >> 16);
  address.ip[14] = static_cast<std::uint8_t>(number >> 8);
  address.ip[15] = static_cast<std::uint8_t>(number);
  address.port = port;
  return address;
}

TEST(AnswerBudget, AFloodFromOneHostLeavesOthersTheirShare) {
  AnswerBudget budget({1, 2}, 64, 4096);
  base::Instant now{1s};
  int given = 0, others = 0;
  for (int i = 0; i < 200'000; ++i) {  // for a second, from all its ports
    given += budget.take(host(1, static_cast<std::uint16_t>(i)), now);
    now += 5us;
    if (i % 10'000 == 0) others += budget.take(host(2), now);
  }
  EXPECT_LE(given, (4096 + 64) * 17 / 16 + 2);
  EXPECT_GE(given, 4096);
  EXPECT_EQ(others, 20);
}

TEST(AnswerBudget, AFloodFromForgedAddressesCostsSoMuchAndNoMore) {
  AnswerBudget budget({1, 2}, 64, 4096);
  base::Instant now{1s};
  int given = 0;
  for (std::uint32_t i = 0; i < 200'000; ++i) {
    given += budget.take(host(i), now);
    now += 5us;
  }
  EXPECT_LE(given, (4096 + 256 * 64) * 17 / 16 + 257);
}

TEST(AnswerBudget, PortsOfAHostShareAndHostsDoNot) {
  AnswerBudget budget({1, 2}, 16, 16);
  const base::Instant now{1s};
  int given = 0;
  for (std::uint16_t port = 0; port < 1000; ++port) given += budget.take(host(1, port), now);
  EXPECT_EQ(given, 4);  // 1/16 s of the host's own share and of the common one, plus one each
  EXPECT_TRUE(budget.take(host(2), now));
}

}  // namespace
}  // namespace fairlead::link
