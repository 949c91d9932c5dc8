// An application at the host engine, step by step: turns, reuse of operation names, and the order in which its
// connections close.

#include "host/application.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "embedded/attach.hpp"
#include "host/one_segment.hpp"
#include "host/visitors.hpp"
#include "queue/producer.hpp"
#include "shm/arena.hpp"

namespace fairlead::host {
namespace {

constexpr std::uint64_t kArenaBytes = Layout::head_bytes() + (1 << 20);
constexpr std::uint64_t kOperations = 262144;  // of the engine
constexpr int kTurnsMost = 100000;

struct Connection {
  explicit Connection(shm::Users& users) {
    int both[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both), 0);
    application = base::FileDescriptor(both[0]);
    host = shm::Socket(base::FileDescriptor(both[1]), users);
  }
  bool is_closed() const {
    pollfd closed{application.get(), POLLRDHUP, 0};
    return ::poll(&closed, 1, 0) == 1;
  }
  base::FileDescriptor application;
  shm::Socket host;
};

class ApplicationTest : public ::testing::Test {
 protected:
  void SetUp() override {
    arena_ = shm::Arena::create(Layout::head_bytes(), kArenaBytes).value();
    auto memory = shm::Arena::view(arena_.descriptor(), kArenaBytes).value();
    core_ = embedded::attach_embedded(base::SocketAddress::from_ip("127.0.0.1", 0).value(), {}).value();
    const auto engine = std::make_shared<ServedEngine>(ServedEngine{.core = core_, .shares = Shares(kOperations, 1)});
    application_ =
        Application::make(std::move(connections_[2].host),
                          {.memory = std::move(memory), .file = {}, .bytes = kArenaBytes}, engine, 1, quota())
            .value();
    request_memory_.emplace(std::span(arena_.head() + Layout::requests(), Layout::requests_bytes()));
    requests_.emplace(queue::Producer::attach(*request_memory_).value());
    for (const std::uint32_t index : {0U, 1U}) {
      const std::span events(arena_.head() + Layout::events(index), Layout::events_bytes());
      ASSERT_TRUE(
          queue::Consumer::create(events, {.element_bytes = sizeof(Event), .elements = kEventsMax + 1}).has_value());
      ASSERT_TRUE(application_->open_port({.index = index, .number = 7 + index}).has_value());
      application_->connect_port(index, std::move(connections_[index].host));
    }
  }
  virtual Quota quota() const { return {}; }
  void put(Request::Kind kind, std::uint32_t port, std::uint64_t name, std::uint64_t length) {
    const Request request{.operation = name,
                          .offset = Layout::head_bytes(),
                          .length = length,
                          .size_min = 1,
                          .to = to_plain(nobody_),
                          .to_port = 1,
                          .messages_max = 1,
                          .port = static_cast<std::uint16_t>(port),
                          .kind = static_cast<std::uint8_t>(kind)};
    std::memcpy(requests_->pnext(), &request, sizeof request);
    requests_->put();
  }
  void ask(Request::Kind kind, std::uint32_t port, std::uint64_t name) {
    put(kind, port, name, 1000);
    while (application_->take_requests(base::MonotonicClock::now(), true)) {
    }
  }
  /// Detaches the application, and serves it until it is gone, for at most kTurnsMost turns.
  void leave() {
    application_->leave();
    for (int i = 0; i < kTurnsMost && !application_->is_gone(); ++i) {
      core_->progress();
      application_->give_events();
    }
  }

  static base::FileDescriptor open_silent(base::SocketAddress& address) {
    base::FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in name{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    socklen_t length = sizeof name;
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&name), length), 0);
    EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&name), &length), 0);
    address = base::SocketAddress::from_ip("127.0.0.1", ntohs(name.sin_port)).value();
    return socket;
  }

  base::SocketAddress nobody_;  // of a socket that receives and never answers
  const base::FileDescriptor silent_ = open_silent(nobody_);
  shm::Users users_;
  Connection connections_[3] = {Connection(users_), Connection(users_), Connection(users_)};
  shm::Arena arena_;
  std::shared_ptr<embedded::EmbeddedCore> core_;
  std::unique_ptr<Application> application_;
  std::optional<OneSegment> request_memory_;
  std::optional<queue::Producer> requests_;
};

// The application damages its shared memory while the host engine is being replaced.
TEST_F(ApplicationTest, WithADamagedQueueItGoesAloneAfterAReplacement) {
  const auto state = application_->save().value();
  std::memset(arena_.head() + Layout::events(1), 0xff, sizeof(queue::Header));
  const auto engine = std::make_shared<ServedEngine>(ServedEngine{.core = core_, .shares = Shares(kOperations, 1)});
  Connection again[3] = {Connection(users_), Connection(users_), Connection(users_)};
  auto restored = Application::restore(
      state, std::move(again[2].host),
      {.memory = shm::Arena::view(arena_.descriptor(), kArenaBytes).value(), .file = {}, .bytes = kArenaBytes}, engine,
      [&, next = 0](int) mutable { return std::move(again[next++].host); });
  ASSERT_TRUE(restored.has_value()) << restored.error().message;
  application_ = std::move(*restored);
  EXPECT_FALSE(application_->fault().empty());
  EXPECT_FALSE(application_->save().has_value()) << "it is about to leave";
  leave();
  EXPECT_TRUE(application_->is_gone());
}

TEST_F(ApplicationTest, HasATurnOfBytesWhereOthersWait) {
  constexpr std::uint32_t kSends = 8;
  constexpr std::uint64_t kLength = Allowance::kBytesInTurn / 2;
  for (std::uint32_t name = 0; name < kSends; ++name) put(Request::Kind::send, 0, name, kLength);
  const auto pending_after_a_turn = [&](bool is_alone) {
    application_->take_requests(base::MonotonicClock::now(), is_alone);
    return application_->fact().operations;
  };
  EXPECT_EQ(pending_after_a_turn(false), 2u);
  EXPECT_EQ(pending_after_a_turn(false), 4u);
  EXPECT_EQ(pending_after_a_turn(true), kSends);
}

// A turn delays each message of the others.
TEST_F(ApplicationTest, HasAShortTurnWhereOthersAreAwake) {
  constexpr std::uint32_t kSends = 2 * Application::kTurn;
  for (std::uint32_t name = 0; name < kSends; ++name) put(Request::Kind::send, 0, name, 1);
  const auto pending_after_a_turn = [&](bool is_alone) {
    application_->take_requests(base::MonotonicClock::now(), is_alone);
    return application_->fact().operations;
  };
  EXPECT_EQ(pending_after_a_turn(false), Application::kSharedTurn);
  EXPECT_EQ(pending_after_a_turn(false), 2 * Application::kSharedTurn);
  EXPECT_EQ(pending_after_a_turn(true), 2 * Application::kSharedTurn + Application::kTurn);
}

TEST_F(ApplicationTest, GetsFewEventsOfFewPortsInATurnWhereOthersAreAwake) {
  constexpr std::uint32_t kPorts = 3 * Application::kPortsInSharedTurn, kSends = 4 * Application::kSharedTurn;
  nobody_ = core_->address();  // nobody has port 1 there, so each send ends at once
  std::vector<Connection> connections;
  for (std::uint32_t index = 2; index < kPorts; ++index) {
    const std::span events(arena_.head() + Layout::events(index), Layout::events_bytes());
    ASSERT_TRUE(
        queue::Consumer::create(events, {.element_bytes = sizeof(Event), .elements = kEventsMax + 1}).has_value());
    ASSERT_TRUE(application_->open_port({.index = index, .number = 7 + index}).has_value());
    application_->connect_port(index, std::move(connections.emplace_back(users_).host));
  }
  std::uint64_t name = 0;
  const auto most_in_a_turn = [&](std::uint32_t ports, std::uint32_t sends) {
    for (std::uint32_t index = 0; index < ports; ++index)
      for (std::uint32_t i = 0; i < sends; ++i) ask(Request::Kind::send, index, name++);
    core_->progress();
    std::uint64_t most = 0, left = application_->fact().operations;
    EXPECT_EQ(left, ports * sends);
    for (int i = 0; i < kTurnsMost && left > 0; ++i) {
      application_->take_requests(base::MonotonicClock::now(), false);
      application_->give_events();
      const std::uint64_t before = std::exchange(left, application_->fact().operations);
      most = std::max(most, before - left);
    }
    EXPECT_EQ(left, 0u);
    return most;
  };
  EXPECT_EQ(most_in_a_turn(1, kSends), Application::kSharedTurn);
  EXPECT_EQ(most_in_a_turn(kPorts, 1), Application::kPortsInSharedTurn);
}

// Deferred requests are submitted a turn at a time, so that other applications have their turns in between.
TEST_F(ApplicationTest, TakesUpWhatWaitsATurnAtATime) {
  constexpr std::uint32_t kWaiting = 500;
  constexpr std::uint64_t kLength = 1 << 20, kLong = Allowance::kOutstandingMost / kLength;
  for (std::uint64_t name = 0; name <= kLong; ++name) put(Request::Kind::send, 0, name, kLength);
  for (std::uint64_t name = kLong + 1; name <= kLong + kWaiting; ++name) put(Request::Kind::send, 0, name, 1);
  while (application_->take_requests(base::MonotonicClock::now(), true)) {
  }
  ASSERT_EQ(application_->port(0)->deferred.size(), kWaiting + 1);
  for (std::uint64_t name = 0; name < kLong; ++name) ask(Request::Kind::cancel, 0, name);
  std::size_t most = 0, left = kWaiting + 1;
  for (int i = 0; i < kTurnsMost && left > 0; ++i) {
    application_->take_requests(base::MonotonicClock::now(), false);
    application_->give_events();
    const std::size_t before = std::exchange(left, application_->port(0)->deferred.size());
    most = std::max(most, before - left);
  }
  EXPECT_EQ(left, 0u);
  EXPECT_LE(most, Application::kSharedTurn);
}

// A deferred request is canceled, and a request of another port then uses its name. Only the new request is submitted.
TEST_F(ApplicationTest, MayUseTheNameOfACancelledRequestAgainAtAnotherPort) {
  std::uint64_t name = 0;
  while (application_->port(0)->deferred.empty() && name < kOperationsMax - 2) ask(Request::Kind::send, 0, name++);
  ASSERT_FALSE(application_->port(0)->deferred.empty());
  const std::uint64_t waits = name - 1;
  ask(Request::Kind::send, 1, name++);
  ASSERT_FALSE(application_->port(1)->deferred.empty());
  ask(Request::Kind::cancel, 0, waits);
  ask(Request::Kind::send, 1, waits);
  for (std::uint64_t posted = 0; posted < waits; ++posted) ask(Request::Kind::cancel, 0, posted);
  for (int i = 0; i < kTurnsMost && application_->port(0)->pending > 0; ++i) application_->give_events();
  EXPECT_EQ(application_->port(0)->pending, 0U);
  EXPECT_EQ(application_->port(1)->pending, 2U);
  EXPECT_EQ(application_->fault(), "");
  leave();
  EXPECT_TRUE(application_->is_gone());
}

// The library treats the end of a connection as the end of the host engine, and then reuses all its memory.
TEST_F(ApplicationTest, HasKeysInAdvanceThatAreReplacedAndGivenBack) {
  auto& page = *reinterpret_cast<SharedPage*>(arena_.head());
  KeyShelf& shelf = page.ports[0].keys;
  EXPECT_EQ(shelf.given, 0u);
  ask(Request::Kind::give_keys, 0, 0);
  EXPECT_EQ(shelf.given, kKeysAhead);
  ask(Request::Kind::give_keys, 0, 0);
  EXPECT_EQ(shelf.given, kKeysAhead) << "it has room for no more";
  std::uint64_t name = 1;
  for (; name <= kKeysAhead / 2; ++name) ask(Request::Kind::expose, 0, name);
  EXPECT_EQ(shelf.given, kKeysAhead + kKeysAhead / 2) << "half of them were used";
  EXPECT_EQ(application_->fact().operations, kKeysAhead / 2);
  shelf.given = 7;  // it believes only its own count
  for (auto& key : shelf.keys) key = 0;
  for (; name <= kKeysAhead; ++name) ask(Request::Kind::expose, 0, name);
  EXPECT_EQ(shelf.given, 2 * kKeysAhead);
  EXPECT_TRUE(application_->fault().empty()) << application_->fault();
  leave();
  EXPECT_TRUE(application_->is_gone());
  EXPECT_EQ(core_->driver().engine().messages().use().operations, 0u);
}

class ApplicationWithFewOperations : public ApplicationTest {
 protected:
  Quota quota() const override { return {.operations = 16}; }
};

TEST_F(ApplicationWithFewOperations, HasFewKeysInAdvance) {
  const auto given = [&](std::uint32_t port) -> std::uint64_t {
    return reinterpret_cast<SharedPage*>(arena_.head())->ports[port].keys.given;
  };
  ask(Request::Kind::give_keys, 0, 0);
  EXPECT_EQ(given(0), 4u) << "a quarter";
  ask(Request::Kind::give_keys, 1, 0);
  EXPECT_EQ(given(1), 1u) << "the quarter is used up, and this port has none";
  ask(Request::Kind::expose, 1, 1);
  EXPECT_EQ(given(1), 2u);
}

TEST_F(ApplicationWithFewOperations, GetsTheKeysOfAClosedPortBack) {
  for (int round = 0; round < 3; ++round) {
    ask(Request::Kind::give_keys, 0, 0);
    EXPECT_EQ(reinterpret_cast<SharedPage*>(arena_.head())->ports[0].keys.given, 4u) << round;
    application_->close_port(0, false);
    for (int i = 0; i < kTurnsMost && application_->port(0) != nullptr; ++i) application_->give_events();
    const std::span events(arena_.head() + Layout::events(0), Layout::events_bytes());
    ASSERT_TRUE(
        queue::Consumer::create(events, {.element_bytes = sizeof(Event), .elements = kEventsMax + 1}).has_value());
    ASSERT_TRUE(application_->open_port({.index = 0, .number = 7}).has_value());
  }
}

TEST_F(ApplicationTest, MayNotExposeWithoutAKey) {
  ask(Request::Kind::expose, 0, 1);
  EXPECT_FALSE(application_->fault().empty());
}

TEST_F(ApplicationTest, KeepsEachConnectionUntilNothingRefersToItsMemory) {
  ask(Request::Kind::receive, 1, 0);
  application_->leave();
  EXPECT_EQ(application_->fact().operations, 1U);
  EXPECT_FALSE(application_->is_gone());
  leave();
  ASSERT_TRUE(application_->is_gone());
  for (const Connection& one : connections_) EXPECT_FALSE(one.is_closed());
  application_.reset();
  for (const Connection& one : connections_) EXPECT_TRUE(one.is_closed());
}

TEST_F(ApplicationTest, ClosesThePortThatItIsAskedTo) {
  application_->close_port(0, true);
  application_->give_events();
  EXPECT_TRUE(connections_[0].is_closed());
  EXPECT_FALSE(connections_[1].is_closed());
  EXPECT_EQ(application_->fact().ports, 1U);
}

TEST(Visitors, OfOneUserAreFewAndTheOldestGoes) {
  shm::Users users;
  Visitors visitors;
  std::vector<Connection> connections;
  for (std::ptrdiff_t i = 0; i <= Visitors::kMostOfUser; ++i) connections.emplace_back(users);
  for (Connection& one : connections) visitors.add(std::move(one.host), {});
  EXPECT_EQ(visitors.count(), static_cast<std::size_t>(Visitors::kMostOfUser));
  EXPECT_TRUE(connections[0].is_closed());
  EXPECT_FALSE(connections[1].is_closed());
}

}  // namespace
}  // namespace fairlead::host
