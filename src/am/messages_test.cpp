// Messages of all kinds, in one engine and between two.

#include <array>
#include <numeric>

#include "am/pair_for_tests.hpp"

namespace fairlead::am {
namespace {

class Messages : public Pair, public testing::WithParamInterface<std::string> {
  std::pair<std::string, std::string> addresses() override {
    return {"127.0.0.1", GetParam().ends_with("self") ? "127.0.0.1" : "127.0.0.2"};
  }
  std::string path() override { return GetParam() == "shm" ? "auto" : GetParam().starts_with("host") ? "host" : "udp"; }
};
INSTANTIATE_TEST_SUITE_P(Path, Messages, testing::Values("self", "udp", "shm", "host_self", "host"),
                         [](const auto& instance) { return instance.param; });

TEST_P(Messages, ShortOnesCarryAllNumbersOfArguments) {
  std::array<Argument, kArgumentsMax> all{};
  std::iota(all.begin(), all.end(), -7);
  for (unsigned count = 0; count <= kArgumentsMax; ++count) {
    ASSERT_EQ(a.endpoint->request(0, kEcho, std::span(all).first(count)), Status::ok);
    ASSERT_TRUE(until([&] { return a.seen.size() == count + 1; }));
    const std::vector<Argument> want(all.begin(), all.begin() + count);
    EXPECT_EQ(b.seen.back().arguments, want);
    EXPECT_TRUE(b.seen.back().is_request);
    EXPECT_EQ(a.seen.back().arguments, want);
    EXPECT_FALSE(a.seen.back().is_request);
  }
}

TEST_P(Messages, MediumOnesComeInAnAlignedBuffer) {
  const std::array<Argument, 3> arguments{1, 2, 3};
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{863}, std::size_t{864}, std::size_t{865},
                                 std::size_t{4000}, kMaxMedium}) {
    const auto data = pattern(size);
    ASSERT_EQ(a.endpoint->request_medium(0, kEchoMedium, data, arguments), Status::ok);
    const std::size_t before = a.seen.size();
    ASSERT_TRUE(until([&] { return a.seen.size() == before + 1; })) << size;
    EXPECT_EQ(b.seen.back().data, data);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b.seen.back().place) % 8, 0u);
    EXPECT_EQ(a.seen.back().data, data);
    EXPECT_EQ(a.seen.back().size, Size::medium);
  }
}

TEST_P(Messages, LongOnesLieInTheSegmentBeforeTheHandlerRuns) {
  const std::array<Argument, 1> arguments{5};
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{10'000}, std::size_t{150'000}}) {
    const auto data = pattern(size, 3);
    ASSERT_EQ(a.endpoint->request_long(0, 50, kEchoLong, data, arguments), Status::ok);
    const std::size_t before = a.seen.size();
    ASSERT_TRUE(until([&] { return a.seen.size() == before + 1; })) << size;
    EXPECT_EQ(b.seen.back().data, data);
    EXPECT_EQ(b.seen.back().place, b.memory.data() + 50);
    EXPECT_EQ(a.seen.back().place, a.memory.data() + 100);
    EXPECT_EQ(a.seen.back().data, data);
  }
  ASSERT_TRUE(until([&] { return a.endpoint->outstanding() == 0; }));
}

TEST_P(Messages, GetFetchesAndRunsTheHandlerHere) {
  b.memory = pattern(b.memory.size(), 9);
  b.endpoint->set_segment(b.memory.data(), b.memory.size());
  const std::array<Argument, 2> arguments{8, 9};
  ASSERT_EQ(a.endpoint->get(0, 1000, kNote, 20, 120'000, arguments), Status::ok);
  ASSERT_TRUE(until([&] { return a.seen.size() == 1; }));
  EXPECT_EQ(a.seen[0].arguments, (std::vector<Argument>{8, 9}));
  EXPECT_EQ(a.seen[0].place, a.memory.data() + 20);
  EXPECT_TRUE(std::equal(a.seen[0].data.begin(), a.seen[0].data.end(), b.memory.begin() + 1000));
  EXPECT_EQ(a.seen[0].data.size(), 120'000u);
  EXPECT_TRUE(b.seen.empty());
  // A get beyond the segment is returned.
  ASSERT_EQ(a.endpoint->get(0, b.memory.size() - 10, kNote, 0, 11, {}), Status::ok);
  ASSERT_TRUE(until([&] { return a.returned.size() == 1; }));
  EXPECT_EQ(a.returned[0].refusal, Refusal::bad_length);
  ASSERT_EQ(a.endpoint->get(0, 0, kNote, a.memory.size() - 10, 11, {}), Status::ok);
  ASSERT_TRUE(until([&] { return a.returned.size() == 2; }));
  EXPECT_EQ(a.returned[1].refusal, Refusal::bad_length);
  run_good_requests(100);
}

TEST_P(Messages, AsynchronousLongOnesRefuseRatherThanWait) {
  ASSERT_EQ(a.endpoint->set_depth(4), Status::ok);
  const auto data = pattern(20'000);
  int taken = 0;
  // Each message has a place of its own, because the handler may still read one when the next arrives.
  for (std::uint64_t i = 0; i < 6; ++i)
    taken += a.endpoint->request_long_async(0, i * data.size(), kEcho, data, {}) == Status::ok;
  // In one engine, the requests wait at the other bundle until it is polled.
  EXPECT_EQ(taken, 4);
  ASSERT_TRUE(until([&] { return a.seen.size() == 4; }));
  EXPECT_EQ(a.endpoint->request_long_async(0, 6 * data.size(), kEcho, data, {}), Status::ok);
  ASSERT_TRUE(until([&] { return a.seen.size() == 5 && a.endpoint->outstanding() == 0; }));
}

TEST_P(Messages, AHandlerThatDoesNotReplyGivesTheCreditBack) {
  ASSERT_EQ(a.endpoint->set_depth(4), Status::ok);
  for (int i = 0; i < 10; ++i) {
    while (a.endpoint->outstanding() == 4) {
      b.bundle->poll();
      a.bundle->poll();
    }
    ASSERT_EQ(a.endpoint->request(0, kNote, {}), Status::ok);
  }
  ASSERT_TRUE(until([&] { return b.seen.size() == 10 && a.endpoint->outstanding() == 0; }));
}

TEST_P(Messages, ToOneselfToo) {
  ASSERT_EQ(a.endpoint->map(5, a.endpoint->name(), kKey), Status::ok);
  const std::array<Argument, 1> arguments{3};
  // More requests than credits: request() polls by itself while it waits.
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(a.endpoint->request(5, kEcho, arguments), Status::ok);
  ASSERT_TRUE(until([&] { return a.endpoint->outstanding() == 0; }));
  EXPECT_EQ(a.seen.size(), 2000u);
}

TEST_P(Messages, AReplyGoesOnceAndOnlyFromARequest) {
  struct Replies {
    std::vector<Status> statuses;
  } replies;
  const auto twice = [](void* context, Token& token, const Message&) {
    auto& statuses = static_cast<Replies*>(context)->statuses;
    statuses.push_back(token.reply(kNote, {}));
    statuses.push_back(token.reply(kNote, {}));
    statuses.push_back(token.endpoint().request(0, kNote, {}));
    statuses.push_back(token.endpoint().bundle().poll());
  };
  const auto of_reply = [](void* context, Token& token, const Message&) {
    static_cast<Replies*>(context)->statuses.push_back(token.reply(kNote, {}));
  };
  ASSERT_EQ(b.endpoint->set_handler(30, twice, &replies), Status::ok);
  ASSERT_EQ(a.endpoint->set_handler(kNote, of_reply, &replies), Status::ok);
  ASSERT_EQ(a.endpoint->request(0, 30, {}), Status::ok);
  ASSERT_TRUE(until([&] { return replies.statuses.size() == 5; }));
  EXPECT_EQ(replies.statuses,
            (std::vector{Status::ok, Status::bad_state, Status::bad_state, Status::bad_state, Status::bad_state}));
}

void on_sum(Token& token, std::int64_t x, float y, const std::array<std::uint8_t, 5>& z);
void on_text(Token& token, std::span<std::byte> text, int line);
constexpr auto kSum = index_of<&on_sum>(40);
constexpr auto kText = index_of<&on_text>(41);
std::int64_t sum_seen = 0;
int line_seen = 0;
std::size_t text_seen = 0;

void on_sum(Token& token, std::int64_t x, float y, const std::array<std::uint8_t, 5>& z) {
  sum_seen = x + static_cast<std::int64_t>(y) + z[4];
  const std::array<std::byte, 3> text{};
  EXPECT_EQ(reply_medium(token, kText, text, 12), Status::ok);
}
void on_text(Token&, std::span<std::byte> text, int line) {
  text_seen = text.size();
  line_seen = line;
}

TEST_P(Messages, TypedHandlersGetValuesOfTheirTypes) {
  ASSERT_EQ(b.endpoint->set_typed<&on_sum>(kSum), Status::ok);
  ASSERT_EQ(a.endpoint->set_typed<&on_text>(kText), Status::ok);
  ASSERT_EQ(a.endpoint->request(0, kSum, std::int64_t{1} << 40, 2.5F, std::array<std::uint8_t, 5>{0, 0, 0, 0, 7}),
            Status::ok);
  ASSERT_TRUE(until([&] { return line_seen == 12; }));
  EXPECT_EQ(sum_seen, (std::int64_t{1} << 40) + 9);
  EXPECT_EQ(text_seen, 3u);
}

}  // namespace
}  // namespace fairlead::am
