#include "tools/perf/control.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <nlohmann/json.hpp>
#include <random>

#include "tools/perf/protocol.hpp"

namespace fairlead::tools {
namespace {

using nlohmann::json;

/// A control, and the raw socket of its other end.
struct RawEnd {
  RawEnd() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    raw = base::FileDescriptor(ends[0]);
    control.emplace(base::FileDescriptor(ends[1]));
  }
  void write(std::string_view bytes) {
    EXPECT_EQ(::send(raw.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }

  base::FileDescriptor raw;
  std::optional<PerfControl> control;
};

TEST(PerfControl, MessagesArriveInOrderHoweverTheStreamIsCut) {
  RawEnd ends;
  ends.write("{\"a\": 1}\n{\"a\"");
  EXPECT_EQ(ends.control->receive().value(), json({{"a", 1}}));
  EXPECT_TRUE(ends.control->is_readable());
  ends.write(": 2}\n{\"a\": 3}\n");
  EXPECT_EQ(ends.control->receive().value(), json({{"a", 2}}));
  EXPECT_EQ(ends.control->receive().value(), json({{"a", 3}}));
  EXPECT_FALSE(ends.control->is_readable());
}

TEST(PerfControl, ThatNothingComesInTimeIsSilence) {
  RawEnd ends;
  ends.write("{\"a\": 1}");  // no end of a line
  EXPECT_EQ(ends.control->receive(Duration::zero()).error().status, Status::silent);
}

TEST(PerfControl, AnEndThatIsGoneIsUnreachable) {
  RawEnd ends;
  ends.raw.reset();
  EXPECT_TRUE(ends.control->is_readable());
  EXPECT_EQ(ends.control->receive().error().status, Status::unreachable);
  EXPECT_FALSE(ends.control->send(perf_message_ready()));
}

TEST(PerfControl, ALineIsOneJsonObjectOfLimitedLength) {
  for (const std::string bad : {"\n", "[]\n", "1\n", "{\n", "\xff\xfe\n", "{} {}\n", "SSH-2.0-OpenSSH_9.2\r\n"}) {
    RawEnd ends;
    ends.write(bad);
    EXPECT_EQ(ends.control->receive().error().status, Status::invalid) << bad;
  }
  RawEnd ends;
  ends.write(std::string(PerfControl::kLineMax, '{'));
  EXPECT_EQ(ends.control->receive().error().status, Status::invalid);
}

// An end that reads nothing must not hold the other one up.
TEST(PerfControl, SendingNeverBlocks) {
  RawEnd ends;
  const json message{{"a", std::string(1000, 'x')}};
  bool is_sent = true;
  for (int i = 0; i < 100'000 && is_sent; ++i) is_sent = ends.control->send(message);
  EXPECT_FALSE(is_sent);
}

// Any bytes: a message or an error, and an end.
TEST(PerfControl, SurvivesRandomBytes) {
  std::minstd_rand random(1);
  for (int round = 0; round < 200; ++round) {
    RawEnd ends;
    std::string bytes(random() % 6000, '\0');
    for (char& byte : bytes) byte = random() % 8 == 0 ? '\n' : static_cast<char>(random());
    ends.write(bytes);
    ends.raw.reset();
    int messages = 0;
    while (const auto message = ends.control->receive()) {
      (void)parse_perf_plan(*message);
      ASSERT_LE(++messages, 6000);
    }
  }
}

}  // namespace
}  // namespace fairlead::tools
