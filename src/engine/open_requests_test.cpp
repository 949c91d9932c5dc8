#include "engine/open_requests.hpp"

#include <gtest/gtest.h>

namespace fairlead::engine {
namespace {

RemotePort asked(std::uint8_t host, std::uint32_t port) {
  return {*base::SocketAddress::from_ip("10.0.0." + std::to_string(host), 20480), port};
}
bool is_open(const OpenRequests& requests, std::uint64_t name, const RemotePort& from) {
  return requests.is_open(name, from.engine, from.port);
}

TEST(OpenRequests, AnswersComeFromWhomWasAskedAndOnce) {
  OpenRequests requests;
  EXPECT_FALSE(is_open(requests, 7, asked(1, 1)));
  requests.open(7, asked(1, 1));
  EXPECT_TRUE(is_open(requests, 7, asked(1, 1)));
  EXPECT_FALSE(is_open(requests, 7, asked(1, 2)));
  EXPECT_FALSE(is_open(requests, 7, asked(2, 1)));
  EXPECT_FALSE(is_open(requests, 8, asked(1, 1)));
  EXPECT_FALSE(is_open(requests, 1ULL << 32 | 7, asked(1, 1))) << "a later request at this place";
  requests.close(1ULL << 32 | 7);
  EXPECT_TRUE(is_open(requests, 7, asked(1, 1)));
  requests.close(7);
  EXPECT_FALSE(is_open(requests, 7, asked(1, 1)));
  requests.open(2ULL << 32 | 7, asked(1, 1));
  EXPECT_FALSE(is_open(requests, 7, asked(1, 1)));
  EXPECT_TRUE(is_open(requests, 2ULL << 32 | 7, asked(1, 1)));
}

TEST(OpenRequests, NobodyWasAskedAtPlacesThatThereAreNot) {
  OpenRequests requests;
  requests.open(3, asked(1, 1));
  for (const std::uint64_t name : {0ULL, 2ULL, 4ULL, 0xFFFF'FFFFULL, ~0ULL}) {
    EXPECT_FALSE(is_open(requests, name, {})) << name;
    requests.close(name);
  }
  EXPECT_TRUE(OpenRequests::is_possible(3ULL << 32 | 5));
  EXPECT_FALSE(OpenRequests::is_possible(OpenRequests::kPlacesMax));
}

}  // namespace
}  // namespace fairlead::engine
