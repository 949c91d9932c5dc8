// Refused messages come back to handler 0 with their reason, and the pair continues.

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>

#include "am/pair_for_tests.hpp"

namespace fairlead::am {
namespace {

class ReturnedMessages : public Pair, public testing::WithParamInterface<std::string> {
 protected:
  std::string path() override { return GetParam(); }
  void expect_returned(Refusal refusal, Operation operation) {
    ASSERT_TRUE(until([&] { return !a.returned.empty(); }));
    EXPECT_EQ(a.returned.size(), 1u);
    EXPECT_EQ(a.returned[0].refusal, refusal);
    EXPECT_EQ(a.returned[0].operation, operation);
    a.returned.clear();
    EXPECT_EQ(a.endpoint->outstanding(), 0u);
  }
  // Only this side polls. The time limit only ends a failing test.
  bool until_returned(std::size_t count) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(100);
    while (a.returned.size() < count && std::chrono::steady_clock::now() < end)
      a.bundle->wait(std::chrono::steady_clock::now() + std::chrono::milliseconds(20));
    return a.returned.size() >= count;
  }
};

TEST_P(ReturnedMessages, EachReasonHasItsCodeAndThePairGoesOn) {
  const auto data = pattern(2000);
  // More rejections than credits: no credit may be lost.
  for (int round = 0; round < 130; ++round) {
    ASSERT_EQ(a.endpoint->request(0, 200, {}), Status::ok);
    expect_returned(Refusal::bad_handler, Operation::request);
    if (HasFatalFailure()) return;
  }
  run_good_requests(1000);

  ASSERT_EQ(a.endpoint->set_translation_key(0, kKey + 1), Status::ok);
  ASSERT_EQ(a.endpoint->request_medium(0, kEcho, data, {}), Status::ok);
  expect_returned(Refusal::bad_tag, Operation::request_medium);
  ASSERT_EQ(a.endpoint->set_translation_key(0, kKey), Status::ok);
  b.endpoint->set_tag(Tag::none());
  ASSERT_EQ(a.endpoint->request(0, kEcho, {}), Status::ok);
  expect_returned(Refusal::bad_tag, Operation::request);
  b.endpoint->set_tag(Tag::of(kKey));
  run_good_requests(1000);

  b.endpoint->set_segment(nullptr, 0);
  ASSERT_EQ(a.endpoint->request_long(0, 0, kEcho, data, {}), Status::ok);
  expect_returned(Refusal::bad_segment, Operation::request_long);
  b.endpoint->set_segment(b.memory.data(), b.memory.size());
  ASSERT_EQ(a.endpoint->request_long(0, b.memory.size() - 1999, kEcho, data, {}), Status::ok);
  expect_returned(Refusal::bad_length, Operation::request_long);
  run_good_requests(1000);

  Name nobody = b.endpoint->name();
  nobody.endpoint ^= 0x8000;
  ASSERT_EQ(a.endpoint->map(9, nobody, kKey), Status::ok);
  ASSERT_EQ(a.endpoint->request(9, kEcho, {}), Status::ok);
  expect_returned(Refusal::bad_endpoint, Operation::request);
  run_good_requests(1000);
}

void take_two_words(Token&, std::int64_t) {}

TEST_P(ReturnedMessages, ATypedHandlerTakesMessagesOfItsShapeOnly) {
  constexpr auto kTwoWords = index_of<&take_two_words>(51);
  ASSERT_EQ(b.endpoint->set_typed<&take_two_words>(kTwoWords), Status::ok);
  constexpr std::array<Argument, 3> kWords{1, 2, 3};
  for (const std::size_t words : {0U, 1U, 3U}) {
    ASSERT_EQ(a.endpoint->request(0, 51, std::span(kWords).first(words)), Status::ok);
    expect_returned(Refusal::bad_arguments, Operation::request);
  }
  ASSERT_EQ(a.endpoint->request_medium(0, 51, pattern(8), std::span(kWords).first(2)), Status::ok);
  expect_returned(Refusal::bad_arguments, Operation::request_medium);
  ASSERT_EQ(a.endpoint->request(0, kTwoWords, std::int64_t{5}), Status::ok);
  ASSERT_TRUE(until([&] { return a.endpoint->outstanding() == 0; }));
  EXPECT_TRUE(a.returned.empty());

  const auto reply_badly = [](void*, Token& token, const Message&) { EXPECT_EQ(token.reply(51, {}), Status::ok); };
  ASSERT_EQ(b.endpoint->set_handler(50, reply_badly), Status::ok);
  ASSERT_EQ(a.endpoint->set_typed<&take_two_words>(kTwoWords), Status::ok);
  ASSERT_EQ(a.endpoint->request(0, 50, {}), Status::ok);
  ASSERT_TRUE(until([&] { return b.returned.size() == 1; }));
  EXPECT_EQ(b.returned[0].refusal, Refusal::reply_rejected);
  run_good_requests(1000);
}

TEST_P(ReturnedMessages, AReplyThatIsNotTakenComesBackToItsSender) {
  const auto reply_badly = [](void*, Token& token, const Message&) { EXPECT_EQ(token.reply(201, {}), Status::ok); };
  ASSERT_EQ(b.endpoint->set_handler(50, reply_badly), Status::ok);
  ASSERT_EQ(a.endpoint->request(0, 50, {}), Status::ok);
  ASSERT_TRUE(until([&] { return b.returned.size() == 1 && a.endpoint->outstanding() == 0; }));
  EXPECT_EQ(b.returned[0].refusal, Refusal::reply_rejected);
  EXPECT_EQ(b.returned[0].operation, Operation::reply);
  EXPECT_TRUE(a.returned.empty());
  run_good_requests(1000);
}

TEST_P(ReturnedMessages, AnEndpointThatGoesGivesBackWhatItHasNotHandled) {
  run_good_requests(10);
  for (int i = 0; i < 20; ++i) ASSERT_EQ(a.endpoint->request(0, kEcho, {}), Status::ok);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(a.endpoint->request_medium(0, kEcho, pattern(30'000), {}), Status::ok);
  b.bundle.reset();
  ASSERT_TRUE(until_returned(23));
  for (const Returned& returned : a.returned) EXPECT_EQ(returned.refusal, Refusal::bad_endpoint);
  EXPECT_EQ(a.endpoint->outstanding(), 0u);
}

// The other side is a separate process, which is stopped and then killed.
class DeadPeer : public ReturnedMessages {
 protected:
  DomainSettings settings() override { return {.engine = {{"give_up_after", "2000"}}}; }

  void SetUp() override {
    if (path() == "host") host::DaemonForTests::shared();  // not of the child
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    child_ = ::fork();
    if (child_ == 0) live(ends[1]);
    open(a, addresses().first);
    meet(a, ends[0]);
    ::close(ends[0]);
    ::close(ends[1]);
  }
  void TearDown() override {
    send_signal(SIGKILL);
    ReturnedMessages::TearDown();
  }

  static void meet(Side& own, int socket) {
    const Name name = own.endpoint->name();
    Name other;
    ASSERT_EQ(::write(socket, &name, sizeof name), static_cast<ssize_t>(sizeof name));
    ASSERT_EQ(::read(socket, &other, sizeof other), static_cast<ssize_t>(sizeof other));
    ASSERT_EQ(own.endpoint->map(0, other, kKey), Status::ok);
  }
  [[noreturn]] void live(int socket) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    open(b, addresses().second);
    meet(b, socket);
    while (!HasFatalFailure()) b.bundle->wait(std::chrono::steady_clock::now() + std::chrono::seconds(1));
    ::_exit(1);
  }
  void send_signal(int number) {
    if (child_ <= 0) return;
    ::kill(child_, number);
    ::waitpid(child_, nullptr, WUNTRACED);
    if (number == SIGKILL) child_ = -1;
  }
  bool until_alone(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(100);
    while (!condition() && std::chrono::steady_clock::now() < end) a.bundle->poll();
    return condition();
  }

  pid_t child_ = -1;
};

TEST_P(DeadPeer, GivesAllBackAndItsSuccessorIsReached) {
  for (int i = 0; i < 10; ++i) ASSERT_EQ(a.endpoint->request(0, kEcho, {}), Status::ok);
  ASSERT_TRUE(until_alone([&] { return a.seen.size() == 10; }));
  send_signal(SIGSTOP);
  for (int i = 0; i < 20; ++i) ASSERT_EQ(a.endpoint->request(0, kEcho, {}), Status::ok);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(a.endpoint->request_medium(0, kEcho, pattern(30'000), {}), Status::ok);
  send_signal(SIGKILL);
  ASSERT_TRUE(until_returned(23));
  for (const Returned& returned : a.returned) EXPECT_EQ(returned.refusal, Refusal::unreachable);
  EXPECT_EQ(a.endpoint->outstanding(), 0u);
  a.returned.clear();
  open(b, addresses().second);
  ASSERT_EQ(a.endpoint->unmap(0), Status::ok);
  ASSERT_EQ(a.endpoint->map(0, b.endpoint->name(), kKey), Status::ok);
  ASSERT_EQ(b.endpoint->map(0, a.endpoint->name(), kKey), Status::ok);
  // The predecessor's end may not be known on each transport yet; messages to it come back.
  for (int ways = 0; ways < 3 && b.seen.empty(); ++ways) {
    const std::size_t told = a.seen.size() + a.returned.size();
    ASSERT_EQ(a.endpoint->request(0, kEcho, {}), Status::ok);
    ASSERT_TRUE(until([&] { return a.seen.size() + a.returned.size() > told; }));
  }
  for (const Returned& returned : a.returned) EXPECT_EQ(returned.refusal, Refusal::unreachable);
  run_good_requests(1000);
}

class Timeouts : public ReturnedMessages {
  DomainSettings settings() override { return {.request_timeout = std::chrono::milliseconds(100)}; }
};

TEST_P(Timeouts, APeerThatDoesNotPollInTimeIsCongestedAndItsLateReplyIsNobodys) {
  for (int i = 0; i < 3; ++i) ASSERT_EQ(a.endpoint->request(0, kEcho, {}), Status::ok);
  ASSERT_TRUE(until_returned(3));
  for (const Returned& returned : a.returned) EXPECT_EQ(returned.refusal, Refusal::congestion);
  ASSERT_TRUE(until([&] { return b.seen.size() == 3; }));
  EXPECT_TRUE(a.seen.empty());
  // On a busy machine, good messages may be late, too.
  a.returned.clear();
  std::size_t sent = 0;
  while (a.seen.size() < 300) {
    ASSERT_EQ(a.endpoint->request(0, kEcho, {}), Status::ok);
    ++sent;
    ASSERT_TRUE(until([&] { return a.seen.size() + a.returned.size() == sent; }));
  }
}

class LittleMemory : public ReturnedMessages {
  DomainSettings settings() override { return {.engine = {{"active_memory_max", "1048576"}}}; }
};

TEST_P(LittleMemory, WhatFindsNoRoomIsSentAgain) {
  const auto data = pattern(kMaxMedium);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(a.endpoint->request_medium(0, kNote, data, {}), Status::ok);
  for (int i = 0; i < 1000; ++i) a.bundle->poll();
  ASSERT_TRUE(until([&] { return b.seen.size() == 100; }));
  for (const Seen& seen : b.seen) ASSERT_EQ(seen.data, data);
  EXPECT_TRUE(a.returned.empty());
}

INSTANTIATE_TEST_SUITE_P(Path, ReturnedMessages, testing::Values("udp", "auto", "host"));
INSTANTIATE_TEST_SUITE_P(Path, DeadPeer, testing::Values("udp", "auto", "host"));
INSTANTIATE_TEST_SUITE_P(Path, Timeouts, testing::Values("udp", "host"));
INSTANTIATE_TEST_SUITE_P(Path, LittleMemory, testing::Values("udp", "auto", "host"));

}  // namespace
}  // namespace fairlead::am
