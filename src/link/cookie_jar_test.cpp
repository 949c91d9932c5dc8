#include "link/cookie_jar.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace fairlead::link {
namespace {

using namespace std::chrono_literals;

class CookieJarTest : public ::testing::Test {
 protected:
  CookieJarTest() { from_.port = 20480; }

  TokenSource secrets_{1, 2};
  CookieJar jar_{secrets_};
  base::SocketAddress from_;
  std::vector<std::byte> hello_ = std::vector<std::byte>(48, std::byte{7});
  base::Instant now_{};  // a clock may begin at zero
};

TEST_F(CookieJarTest, OnlyTheCookieOfThisHelloFromThisAddressIsGood) {
  const std::uint64_t cookie = jar_.bake(from_, hello_, now_);
  EXPECT_TRUE(jar_.is_ours(cookie, from_, hello_, now_));
  EXPECT_FALSE(jar_.is_ours(0, from_, hello_, now_));
  EXPECT_FALSE(jar_.is_ours(cookie ^ 1, from_, hello_, now_));
  for (std::byte& byte : hello_) {
    byte ^= std::byte{1};
    EXPECT_FALSE(jar_.is_ours(cookie, from_, hello_, now_));
    byte ^= std::byte{1};
  }
  base::SocketAddress other = from_;
  ++other.port;
  EXPECT_FALSE(jar_.is_ours(cookie, other, hello_, now_));
  other = from_;
  other.ip[15] ^= 1;
  EXPECT_FALSE(jar_.is_ours(cookie, other, hello_, now_));
  other = from_;
  other.scope = 1;
  EXPECT_FALSE(jar_.is_ours(cookie, other, hello_, now_));
}

TEST_F(CookieJarTest, ACookieIsGoodForOneMinuteAtLeastAndTwoAtMost) {
  for (base::Duration baked = 0s; baked < 120s; baked += 7s) {
    CookieJar jar(secrets_);
    jar.bake(from_, hello_, now_);
    const std::uint64_t cookie = jar.bake(from_, hello_, now_ + baked);
    EXPECT_TRUE(jar.is_ours(cookie, from_, hello_, now_ + baked + 60s)) << baked.count();
    EXPECT_FALSE(jar.is_ours(cookie, from_, hello_, now_ + baked + 121s)) << baked.count();
  }
}

TEST_F(CookieJarTest, AJarThatNobodyAskedForLongHasNewKeysOnly) {
  const std::uint64_t cookie = jar_.bake(from_, hello_, now_);
  EXPECT_FALSE(jar_.is_ours(cookie, from_, hello_, now_ + 1h));
  EXPECT_FALSE(jar_.is_ours(cookie, from_, hello_, now_ + 1h));
}

TEST_F(CookieJarTest, AnotherLifeDoesNotTakeThem) {
  TokenSource other_secrets(3, 2);
  CookieJar other(other_secrets);
  EXPECT_FALSE(other.is_ours(jar_.bake(from_, hello_, now_), from_, hello_, now_));
}

}  // namespace
}  // namespace fairlead::link
