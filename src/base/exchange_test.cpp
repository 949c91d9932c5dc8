#include "base/exchange.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <thread>

#include "base/file_descriptor.hpp"

namespace fairlead::base {
namespace {

using namespace std::chrono_literals;

class Exchange : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    here_ = FileDescriptor(ends[0]);
    there_ = FileDescriptor(ends[1]);
  }
  static Instant soon() { return MonotonicClock::now() + 20s; }
  /// The other end sends these bytes, and no more.
  void say(std::string_view bytes) {
    ASSERT_EQ(::send(there_.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }
  static int error_of(const Result<std::vector<std::byte>>& result) { return result ? 0 : result.error().system_errno; }

  FileDescriptor here_, there_;
};

// More than a socket holds: both ends have to send and receive at the same time.
TEST_F(Exchange, GivesEachWhatTheOtherHas) {
  const std::vector<std::byte> ours(kExchangeMost, std::byte{1}), theirs(kExchangeMost - 1, std::byte{2});
  Result<std::vector<std::byte>> got_there;
  std::thread other([&] { got_there = exchange(there_.get(), theirs, soon()); });
  const auto got = exchange(here_.get(), ours, soon());
  other.join();
  ASSERT_TRUE(got && got_there);
  EXPECT_EQ(*got, theirs);
  EXPECT_EQ(*got_there, ours);
}

TEST_F(Exchange, TellsNothing) {
  say({"FLX1\0\0\0\0", 8});
  const auto got = exchange(here_.get(), {}, soon());
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->empty());
}

TEST_F(Exchange, TakesNoMoreThanIsItsOwn) {
  say({"FLX1\0\0\0\1ab", 10});
  const auto got = exchange(here_.get(), {}, soon());
  ASSERT_TRUE(got);
  EXPECT_EQ(got->size(), 1U);
  char next = 0;
  EXPECT_EQ(::recv(here_.get(), &next, 1, MSG_DONTWAIT), 1);
  EXPECT_EQ(next, 'b');
}

TEST_F(Exchange, RefusesAnotherLanguage) {
  say("GET / HTTP/1.1\r\n");
  EXPECT_EQ(error_of(exchange(here_.get(), {}, soon())), EPROTO);
}

TEST_F(Exchange, RefusesWhatIsTooLong) {
  say({"FLX1\0\1\0\1", 8});
  EXPECT_EQ(error_of(exchange(here_.get(), {}, soon())), EMSGSIZE);
  EXPECT_EQ(error_of(exchange(here_.get(), std::vector<std::byte>(kExchangeMost + 1), soon())), EMSGSIZE);
}

TEST_F(Exchange, SeesAnEndThatGoes) {
  say({"FLX1\0\0\0\4ab", 10});
  ASSERT_EQ(::shutdown(there_.get(), SHUT_WR), 0);  // it sends no more, but still receives
  EXPECT_EQ(error_of(exchange(here_.get(), {}, soon())), ECONNRESET);
  there_ = {};
  EXPECT_EQ(error_of(exchange(here_.get(), {}, soon())), ECONNRESET);
  EXPECT_TRUE(exchange(-1, {}, soon()).error().message.ends_with(": Bad file descriptor"));
}

TEST_F(Exchange, EndsAtItsDeadline) {
  const auto late = exchange(here_.get(), {}, MonotonicClock::now() + 1ms);
  EXPECT_EQ(error_of(late), ETIMEDOUT);
  EXPECT_EQ(late.error().message.find("exchange()"), std::string::npos) << "nobody outside has called that";
}

}  // namespace
}  // namespace fairlead::base
