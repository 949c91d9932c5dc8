// What engine/core.hpp promises to the layers above, checked for each engine and for the fake one that the unit tests
// of src/net use. So the fake is not kinder than the engines.

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "embedded/attach.hpp"
#include "host/attach.hpp"
#include "host/host_for_tests.hpp"
#include "net/fake_core_for_tests.hpp"

namespace fairlead::net {
namespace {

using engine::Completion;
using engine::OperationHandle;
using engine::PortHandle;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint32_t kReceiver = 34 << 12 | 1, kSenderNumber = 34 << 12 | 2;
constexpr seconds kPatience(20);

base::Instant from_now(base::Duration time) {
  return base::MonotonicClock::now() + time;
}

/// A Core, and a way to send messages to its port kReceiver. Each message has arrived or was dropped at the return.
class Subject {
 public:
  virtual ~Subject() = default;
  virtual engine::Core& core() = 0;
  virtual void send(std::uint64_t length) = 0;
  /// Lets pending sends end.
  virtual void settle() {}
  /// Whether a message that finds no buffer fetches a spare.
  virtual bool fetches_spares() const { return true; }
};

class FakeSubject final : public Subject {
 public:
  engine::Core& core() override { return *core_; }
  void send(std::uint64_t length) override { core_->arrive(length); }
  void settle() override {
    while (!core_->submitted().empty()) core_->complete(Status::ok);
  }

 private:
  std::shared_ptr<FakeCore> core_ =
      std::make_shared<FakeCore>(base::SocketAddress::from_ip("127.0.0.1", 20480).value());
};

class RealSubject final : public Subject {
 public:
  RealSubject(std::shared_ptr<engine::Core> core, std::unique_ptr<host::HostForTests> host)
      : host_(std::move(host)), core_(std::move(core)), sender_(core_->open_port(kSenderNumber).value()) {}
  ~RealSubject() override { core_->close_port(sender_); }

  engine::Core& core() override { return *core_; }
  void send(std::uint64_t length) override {
    const std::vector<std::byte> bytes(length);
    const iovec memory{const_cast<std::byte*>(bytes.data()), bytes.size()};
    ASSERT_EQ(core_->reserve_events(sender_, 1), Status::ok);
    OperationHandle operation;
    ASSERT_EQ(
        core_->send(
            sender_,
            {.to = {core_->address(), kReceiver}, .part = {std::span(&memory, 1), length, 1}, .is_confirmed = true},
            operation),
        Status::ok);
    Completion end;
    const base::Instant latest = from_now(kPatience);
    while (!core_->next_event(sender_, end)) {
      ASSERT_LT(base::MonotonicClock::now(), latest);
      core_->wait(sender_, from_now(milliseconds(50)));
    }
    core_->release_events(sender_, 1);
    EXPECT_TRUE(end.status == Status::ok || end.status == Status::no_buffer) << to_string(end.status);
  }
  bool fetches_spares() const override { return host_ == nullptr; }

 private:
  std::unique_ptr<host::HostForTests> host_;  // outlives the attachment
  std::shared_ptr<engine::Core> core_;
  PortHandle sender_;
};

struct Kind {
  std::string name;
  std::function<std::unique_ptr<Subject>()> make;
};
std::ostream& operator<<(std::ostream& out, const Kind& kind) {
  return out << kind.name;
}

std::unique_ptr<Subject> make_embedded(const base::SocketAddress& local) {
  engine::EngineOptions options;
  return std::make_unique<RealSubject>(embedded::attach_embedded(local, options).value(), nullptr);
}

std::unique_ptr<Subject> make_hosted() {
  auto host = std::make_unique<host::HostForTests>();
  auto core =
      host::attach_host(host->file(), base::SocketAddress::from_ip("127.0.0.1", 0).value(), engine::EngineOptions())
          .value();
  return std::make_unique<RealSubject>(std::move(core), std::move(host));
}

class CoreContract : public testing::TestWithParam<Kind> {
 protected:
  CoreContract() : subject_(GetParam().make()), port_(core().open_port(kReceiver).value()) {}
  ~CoreContract() override {
    core().close_port(port_);
    if (spares_) {
      EXPECT_EQ(spares_->count(), pooled_.size()) << "all spares are back";
    }
  }

  engine::Core& core() { return subject_->core(); }

  std::span<const iovec> memory(std::uint64_t size) {
    auto& bytes = memory_.emplace_back(size);
    return {&pieces_.emplace_back(iovec{bytes.data(), size}), 1};
  }
  OperationHandle receive(std::uint64_t cookie, std::uint64_t size, std::uint64_t size_min = 1,
                          std::uint32_t messages_max = 1) {
    EXPECT_EQ(core().reserve_events(port_, messages_max), Status::ok);
    OperationHandle operation;
    EXPECT_EQ(core().post_receive(
                  port_, {.memory = memory(size), .size_min = size_min, .messages_max = messages_max, .cookie = cookie},
                  operation),
              Status::ok);
    return operation;
  }
  OperationHandle expose(std::uint64_t cookie, bool is_writable, std::uint64_t& key) {
    EXPECT_EQ(core().reserve_events(port_, 1), Status::ok);
    OperationHandle operation;
    EXPECT_EQ(core().expose(port_, {.memory = memory(64), .length = 64, .is_writable = is_writable, .cookie = cookie},
                            operation, key),
              Status::ok);
    return operation;
  }
  /// The next `count` events, or fewer after a long time.
  std::vector<Completion> take(std::size_t count) {
    std::vector<Completion> all;
    for (const base::Instant latest = from_now(kPatience);
         all.size() < count && base::MonotonicClock::now() < latest;) {
      Completion one;
      if (core().next_event(port_, one)) {
        all.push_back(one);
      } else {
        core().wait(port_, from_now(milliseconds(50)));
      }
    }
    EXPECT_EQ(all.size(), count);
    all.resize(count);
    return all;
  }
  void expect_no_more() {
    std::array<Completion, 2> none;
    EXPECT_EQ(core().next_events(port_, none), 0U);
    EXPECT_FALSE(core().has_event(port_));
  }
  /// Gives the port spares of 64 bytes for one message each.
  void provide(std::size_t count, std::uint32_t length, std::uint32_t granted) {
    spares_ = std::make_shared<engine::SpareReceives>(64, 0);
    for (std::size_t i = 0; i < count; ++i) {
      engine::Spare& spare = *pooled_.emplace_back(std::make_unique<engine::Spare>());
      spare.memory = memory(64);
      spare.cookie = 100 + i;
      spares_->put(spare, engine::SpareReceives::kAnyColour);
    }
    EXPECT_EQ(core().reserve_events(port_, granted), Status::ok);
    core().grant_spares(port_, granted);
    core().set_spares(port_, {.spares = spares_, .length = length, .share = length, .size_min = 64});
  }
  /// The host engine's count may come after the answer to the sender.
  void expect_dropped(std::uint64_t count) {
    const base::Instant latest = from_now(kPatience);
    while (core().dropped_no_buffer(port_) < count && base::MonotonicClock::now() < latest) core().progress();
    EXPECT_EQ(core().dropped_no_buffer(port_), count);
  }
  void put_back(const Completion& end) {
    ASSERT_GE(end.cookie, 100U);
    spares_->put(*pooled_.at(end.cookie - 100), engine::SpareReceives::kAnyColour);
  }

  std::unique_ptr<Subject> subject_;
  PortHandle port_;
  std::list<std::vector<std::byte>> memory_;
  std::list<iovec> pieces_;
  std::vector<std::unique_ptr<engine::Spare>> pooled_;
  std::shared_ptr<engine::SpareReceives> spares_;
};

TEST_P(CoreContract, ANumberIsOpenOnceUntilItIsClosed) {
  const auto again = core().open_port(kReceiver);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().status, Status::in_use);
  core().close_port(port_);
  port_ = core().open_port(kReceiver).value();
}

// The port's operations end with it. Whoever opens the number next meets nothing of them.
TEST_P(CoreContract, AClosedPortLeavesNothing) {
  receive(1, 64);
  receive(2, 64);
  std::uint64_t key = 0;
  const OperationHandle exposed = expose(3, true, key);
  subject_->send(8);  // its event is never taken
  core().close_port(port_);
  port_ = core().open_port(kReceiver).value();
  EXPECT_FALSE(core().cancel(port_, exposed));
  expect_no_more();
  EXPECT_EQ(core().dropped_no_buffer(port_), 0U);
  subject_->send(8);
  expect_dropped(1);
  expect_no_more();
}

TEST_P(CoreContract, ADynamicNumberIsTheHighestFree) {
  constexpr std::uint32_t kFirst = 35 << 12 | 1;
  std::uint32_t number = 0;
  std::vector<PortHandle> ports;
  for (const std::uint32_t expected : {2U, 1U, 0U}) {
    ports.push_back(core().open_port_dynamic(kFirst, 3, number).value());
    EXPECT_EQ(number, kFirst + expected);
  }
  const auto none = core().open_port_dynamic(kFirst, 3, number);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().status, Status::not_available);
  core().close_port(ports[1]);
  ports[1] = core().open_port_dynamic(kFirst, 3, number).value();
  EXPECT_EQ(number, kFirst + 1);
  for (const PortHandle port : ports) core().close_port(port);
}

TEST_P(CoreContract, EachOperationEndsOnceAndInTheOrderOfTheCancels) {
  std::uint64_t key = 0;
  const std::array operations{receive(1, 64), expose(2, true, key), receive(3, 64, 8, 5), expose(4, false, key)};
  for (const std::size_t i : {2, 0, 3, 1}) EXPECT_TRUE(core().cancel(port_, operations.at(i)));
  std::vector<std::uint64_t> ended;
  for (const Completion& end : take(4)) {
    ended.push_back(end.cookie);
    EXPECT_EQ(end.status, Status::canceled);
    EXPECT_TRUE(end.is_final);
  }
  EXPECT_EQ(ended, (std::vector<std::uint64_t>{3, 1, 4, 2}));
  for (const OperationHandle operation : operations) EXPECT_FALSE(core().cancel(port_, operation));
  expect_no_more();
  core().release_events(port_, 8);
}

TEST_P(CoreContract, KeysOfExposuresDiffer) {
  std::uint64_t key = 0, other_key = 0;
  expose(7, true, key);
  expose(1007, true, other_key);
  EXPECT_NE(key, other_key);
}

TEST_P(CoreContract, EventsAreTakenInOrderAndInPortions) {
  for (std::uint64_t i = 1; i <= 5; ++i) receive(i, 64);
  for (int i = 0; i < 5; ++i) subject_->send(8);
  EXPECT_TRUE(core().wait(port_, from_now(kPatience)));
  EXPECT_TRUE(core().has_event(port_));
  std::uint64_t next = 1;
  std::array<Completion, 2> portion;
  for (const base::Instant latest = from_now(kPatience); next <= 5 && base::MonotonicClock::now() < latest;) {
    const std::size_t count = core().next_events(port_, portion);
    if (count == 0) core().wait(port_, from_now(milliseconds(50)));
    for (const Completion& one : std::span(portion).first(count)) EXPECT_EQ(one.cookie, next++);
  }
  EXPECT_EQ(next, 6U);
  expect_no_more();
}

TEST_P(CoreContract, MessagesFillABufferUntilItsRoomOrItsCountIsUsedUp) {
  receive(1, 100, 30, 9);
  receive(2, 100, 1, 2);
  for (int i = 0; i < 5; ++i) subject_->send(30);
  const auto events = take(5);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(events[i].cookie, i < 3 ? 1U : 2U) << i;
    EXPECT_EQ(events[i].offset, (i < 3 ? i : i - 3) * 30) << i;
    EXPECT_EQ(events[i].length, 30U) << i;
    EXPECT_EQ(events[i].is_final, i == 2 || i == 4) << i;
  }
  expect_no_more();
}

TEST_P(CoreContract, AMessageTakesTheFirstBufferWithRoom) {
  receive(1, 10);
  receive(2, 100);
  receive(3, 100);
  subject_->send(50);
  subject_->send(10);
  const auto events = take(2);
  EXPECT_EQ(events[0].cookie, 2U);
  EXPECT_EQ(events[1].cookie, 1U);
  EXPECT_EQ(core().dropped_no_buffer(port_), 0U);
}

TEST_P(CoreContract, AHalfFilledBufferThatIsCancelledKeepsItsMessages) {
  const OperationHandle operation = receive(1, 100, 10, 9);
  subject_->send(10);
  EXPECT_FALSE(take(1)[0].is_final);
  EXPECT_TRUE(core().cancel(port_, operation));
  const Completion end = take(1)[0];
  EXPECT_EQ(end.status, Status::canceled);
  EXPECT_TRUE(end.is_final);
  EXPECT_EQ(end.length, 0U);
}

// The first message without a buffer ends a wait; later ones end none until they are watched for again.
TEST_P(CoreContract, WhatIsDroppedIsCountedAndEndsAWaitOnce) {
  EXPECT_EQ(core().dropped_no_buffer(port_), 0U);
  core().watch_drops(port_);
  for (std::uint64_t i = 1; i <= 2; ++i) {
    const base::Instant latest = from_now(kPatience);
    subject_->send(8);
    EXPECT_FALSE(core().wait(port_, latest));
    EXPECT_LT(base::MonotonicClock::now(), latest);
    EXPECT_EQ(core().dropped_no_buffer(port_), i);
    core().watch_drops(port_);
  }
  subject_->send(8);
  EXPECT_FALSE(core().wait(port_, from_now(kPatience)));
  subject_->send(8);
  const base::Instant soon = from_now(milliseconds(30));
  EXPECT_FALSE(core().wait(port_, soon));
  EXPECT_GE(base::MonotonicClock::now(), soon);
  EXPECT_EQ(core().dropped_no_buffer(port_), 4U);
}

TEST_P(CoreContract, AnInterruptEndsOneWait) {
  core().interrupt(port_);
  base::Instant latest = from_now(kPatience);
  EXPECT_FALSE(core().wait(port_, latest));
  EXPECT_LT(base::MonotonicClock::now(), latest);
  latest = from_now(milliseconds(30));
  EXPECT_FALSE(core().wait(port_, latest));
  EXPECT_GE(base::MonotonicClock::now(), latest);
}

TEST_P(CoreContract, MessagesThatAreTooLongAreRefused) {
  const std::uint64_t most = core().message_size_max();
  std::array<std::byte, 8> bytes{};  // longer memory is not there: nobody reads what is refused
  const iovec whole{bytes.data(), most + 1}, small{bytes.data(), 8};
  const engine::RemotePort to{core().address(), kReceiver};
  EXPECT_EQ(core().reserve_events(port_, 2), Status::ok);
  OperationHandle operation;
  EXPECT_EQ(core().send(port_, {.to = to, .part = {std::span(&whole, 1), most + 1, 1}}, operation),
            Status::message_size);
  const std::array<engine::SendPart, 3> parts{
      {{std::span(&small, 1), 8, 2}, {std::span(&whole, 1), most + 1, 3}, {std::span(&small, 1), 8, 4}}};
  std::array<OperationHandle, 3> operations;
  Status status = Status::ok;
  EXPECT_EQ(core().send_all(port_, to, parts, operations, status), 1U);
  EXPECT_EQ(status, Status::message_size);
  subject_->settle();
  EXPECT_EQ(take(1)[0].cookie, 2U);
  expect_no_more();
}

TEST_P(CoreContract, MoreEventsThanAPortMayHaveAreNotReserved) {
  EXPECT_EQ(core().reserve_events(port_, 1U << 31), Status::no_memory);
  EXPECT_EQ(core().reserve_events(port_, 1000), Status::ok);
  core().release_events(port_, 1000);
}

// Ends as many spares as are granted, and no more.
TEST_P(CoreContract, SparesArePostedAheadWithinWhatIsGranted) {
  provide(5, 3, 2);
  const base::Instant latest = from_now(kPatience);
  while (core().spare_counts(port_).posted < 2 && base::MonotonicClock::now() < latest) core().progress();
  EXPECT_EQ(core().spare_counts(port_).posted, 2U);
  EXPECT_EQ(core().spare_counts(port_).unended, 2U);
  EXPECT_EQ(spares_->count(), 3U);
  for (int i = 0; i < 3; ++i) subject_->send(64);
  for (const Completion& end : take(2)) {
    EXPECT_EQ(end.status, Status::ok);
    EXPECT_TRUE(end.is_final);
    put_back(end);
  }
  expect_dropped(1);
}

TEST_P(CoreContract, AMessageFetchesASpare) {
  if (!subject_->fetches_spares()) return;  // the host engine has no access to the pool
  provide(5, 0, 5);                         // none ahead
  for (int i = 0; i < 6; ++i) subject_->send(64);
  for (const Completion& end : take(5)) {
    EXPECT_EQ(end.status, Status::ok);
    put_back(end);
  }
  expect_dropped(1);
}

TEST_P(CoreContract, APlanWithoutSparesHandsThemBack) {
  provide(4, 4, 4);
  core().set_spares(port_, {});
  const base::Instant latest = from_now(kPatience);
  while (spares_->count() < 4 && base::MonotonicClock::now() < latest) {
    Completion end;
    if (!core().next_event(port_, end)) {
      core().wait(port_, from_now(milliseconds(50)));
      continue;
    }
    EXPECT_EQ(end.status, Status::canceled);
    put_back(end);
  }
  EXPECT_EQ(core().spare_counts(port_).unended, 0U);
  EXPECT_EQ(spares_->count(), 4U);
  subject_->send(64);
  expect_no_more();
  expect_dropped(1);
}

INSTANTIATE_TEST_SUITE_P(
    , CoreContract,
    testing::Values(Kind{"fake", [] { return std::make_unique<FakeSubject>(); }},
                    Kind{"lo", [] { return make_embedded(engine::lo(20480)); }},
                    Kind{"udp", [] { return make_embedded(base::SocketAddress::from_ip("127.0.0.1", 0).value()); }},
                    Kind{"host", make_hosted}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace fairlead::net
