// The states of an id, with a simulated clock.
#include "doors/rdma_cm/connection.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <utility>

namespace fairlead::rdma_cm {
namespace {

using namespace std::chrono_literals;

constexpr Instant kStart{1000s};
constexpr Terms kOurs{.qp_num = 0x11,
                      .qkey = 0,
                      .responder_resources = 2,
                      .initiator_depth = 3,
                      .flow_control = 1,
                      .retry_count = 7,
                      .rnr_retry_count = 6,
                      .has_srq = 0};
constexpr Terms kTheirs{.qp_num = 0x22,
                        .qkey = 0,
                        .responder_resources = 4,
                        .initiator_depth = 5,
                        .flow_control = 0,
                        .retry_count = 0,
                        .rnr_retry_count = 5,
                        .has_srq = 1};

PrivateData words(std::string_view text) {
  PrivateData data;
  data.length = static_cast<std::uint8_t>(text.size());
  std::copy(text.begin(), text.end(), data.bytes.begin());
  return data;
}

Message request_to_v4() {
  Message message;
  message.target = {.family = Family::v4, .ip = *ip_of("10.0.0.7"), .port = 1};
  return message;
}

void expect_told(const Step& step, Event event, int status = 0) {
  EXPECT_EQ(step.error, 0);
  ASSERT_TRUE(step.tell.has_value()) << "event " << std::to_underlying(event);
  EXPECT_EQ(step.tell->event, event);
  EXPECT_EQ(step.tell->status, status);
}

void expect_sent(const Step& step, Kind kind) {
  EXPECT_EQ(step.error, 0);
  ASSERT_TRUE(step.send.has_value()) << "kind " << std::to_underlying(kind);
  EXPECT_EQ(step.send->kind, kind);
}

void expect_quiet(const Step& step) {
  EXPECT_EQ(step.error, 0);
  EXPECT_FALSE(step.send.has_value() || step.tell.has_value());
}

Connection routed(bool is_datagram = false) {
  Connection id(1, 100, is_datagram);
  expect_told(id.resolve_address(0), Event::addr_resolved);
  expect_told(id.resolve_route(0), Event::route_resolved);
  return id;
}

struct Ends {
  Connection initiator = routed();
  Connection responder{2, 200, false};

  /// Proceeds to the state before the RTU arrives.
  void shake() {
    const Step asked = initiator.connect(request_to_v4(), kOurs, words("hello"), kStart);
    expect_sent(asked, Kind::req);
    responder = Connection::answering(*asked.send, 2, 200);
    const Step answered = responder.accept(&kTheirs, words("welcome"), kStart);
    expect_sent(answered, Kind::rep);
    expect_told(initiator.take(*answered.send, kStart), Event::connect_response);
  }
  void connect() {
    shake();
    const Step ready = initiator.accept(nullptr, {}, kStart);
    expect_sent(ready, Kind::rtu);
    expect_told(responder.take(*ready.send, kStart), Event::established);
    EXPECT_EQ(initiator.state(), State::connected);
    EXPECT_EQ(responder.state(), State::connected);
  }
};

TEST(Connection, TellsBothSidesTheTermsOfTheOther) {
  Connection initiator = routed();
  const Step asked = initiator.connect(request_to_v4(), kOurs, words("hello"), kStart);
  const Told request = Connection::request_told(*asked.send);
  EXPECT_EQ(request.terms.qp_num, 0x11U);
  EXPECT_EQ(request.terms.responder_resources, 3);  // the peer's initiator depth
  EXPECT_EQ(request.terms.initiator_depth, 2);
  EXPECT_EQ(request.data.length, 56);  // the full field, as in the kernel
  EXPECT_EQ(request.data.bytes[0], 'h');
  Connection responder = Connection::answering(*asked.send, 2, 200);
  const Step answered = responder.accept(&kTheirs, words("welcome"), kStart);
  const Step told = initiator.take(*answered.send, kStart);
  expect_told(told, Event::connect_response);
  EXPECT_EQ(told.tell->terms.initiator_depth, 4);
  EXPECT_EQ(told.tell->data.length, 196);
  EXPECT_EQ(told.tell->data.bytes[6], 'e');
  EXPECT_EQ(initiator.peer_psn(), responder.psn());
  EXPECT_EQ(responder.peer_psn(), initiator.psn());
}

TEST(Connection, EndsOnBothSidesByOneDisconnectAndItsAnswer) {
  Ends ends;
  ends.connect();
  const Step leaving = ends.initiator.disconnect(kStart);
  expect_sent(leaving, Kind::dreq);
  expect_told(ends.responder.take(*leaving.send, kStart), Event::disconnected);
  const Step left = ends.responder.disconnect(kStart);
  expect_sent(left, Kind::drep);
  expect_told(ends.initiator.take(*left.send, kStart), Event::disconnected);
  for (Connection* each : {&ends.initiator, &ends.responder}) {
    expect_quiet(each->expire(each->due() - 1ms));
    expect_told(each->expire(each->due()), Event::timewait_exit);
    EXPECT_EQ(each->due(), kNever);
  }
}

TEST(Connection, TellsOneDisconnectWhenBothLeaveAtOnce) {
  Ends ends;
  ends.connect();
  const Step first = ends.initiator.disconnect(kStart), second = ends.responder.disconnect(kStart);
  const Step to_responder = ends.responder.take(*first.send, kStart);
  const Step to_initiator = ends.initiator.take(*second.send, kStart);
  expect_told(to_responder, Event::disconnected);
  expect_told(to_initiator, Event::disconnected);
  expect_quiet(ends.initiator.take(*to_responder.send, kStart));
  expect_quiet(ends.responder.take(*to_initiator.send, kStart));
}

TEST(Connection, IsRejectedWithReasonAndWords) {
  Connection initiator = routed();
  const Step asked = initiator.connect(request_to_v4(), kOurs, {}, kStart);
  Connection responder = Connection::answering(*asked.send, 2, 200);
  const Step rejected = responder.reject(Reason::consumer_defined, words("no"));
  expect_sent(rejected, Kind::rej);
  const Step told = initiator.take(*rejected.send, kStart);
  expect_told(told, Event::rejected, 28);
  EXPECT_EQ(told.tell->data.length, 148);
  EXPECT_EQ(told.tell->data.bytes[1], 'o');
  EXPECT_EQ(responder.accept(&kTheirs, {}, kStart).error, EINVAL);
}

TEST(Connection, ToNobodyIsRejectedAndToASilentHostUnreachable) {
  for (const auto& [why, event, status] : {std::tuple(Status::refused, Event::rejected, 8),
                                           std::tuple(Status::unreachable, Event::unreachable, -ETIMEDOUT),
                                           std::tuple(Status::silent, Event::unreachable, -ETIMEDOUT)}) {
    Connection initiator = routed();
    expect_sent(initiator.connect(request_to_v4(), kOurs, {}, kStart), Kind::req);
    const Instant late = kStart + Connection::kNobodyAtMost;
    expect_told(initiator.fail(Kind::req, why, late), event, status);
    expect_quiet(initiator.fail(Kind::req, why, late));
  }
}

TEST(Connection, FindsAListenerThatIsMadeAnew) {
  Connection initiator = routed();
  expect_sent(initiator.connect(request_to_v4(), kOurs, {}, kStart), Kind::req);
  expect_quiet(initiator.fail(Kind::req, Status::refused, kStart));
  const Step again = initiator.expire(initiator.due());
  expect_sent(again, Kind::req);
  Connection responder = Connection::answering(*again.send, 2, 200);
  expect_told(initiator.take(*responder.accept(&kTheirs, {}, kStart).send, kStart), Event::connect_response);
  EXPECT_EQ(initiator.due(), kNever);
}

// A crowded manager drops answers that say that it is busy.
TEST(Connection, RepeatsARequestWithoutAnAnswerUntilItsPatienceEnds) {
  Connection initiator = routed();
  const Step asked = initiator.connect(request_to_v4(), kOurs, words("hello"), kStart);
  const Instant end = kStart + Connection::kAnswerAtMost;
  Instant now = kStart;
  while (initiator.due() < end) {
    const Duration pause = initiator.due() - now;
    EXPECT_GE(pause, Connection::kUnansweredLeast);
    EXPECT_LE(pause, Connection::kUnansweredMost);
    now = initiator.due();
    const Step again = initiator.expire(now);
    expect_sent(again, Kind::req);
    EXPECT_EQ(*again.send, *asked.send);
  }
  EXPECT_GE(now, end - Connection::kUnansweredMost);
  EXPECT_EQ(initiator.due(), end);
  expect_told(initiator.expire(end), Event::unreachable, -ETIMEDOUT);
  EXPECT_EQ(initiator.due(), kNever);
}

TEST(Connection, AsksAgainWhileTheListenerIsBusyUntilItsPatienceEnds) {
  Connection initiator = routed();
  const Step asked = initiator.connect(request_to_v4(), kOurs, words("hello"), kStart);
  Message busy;
  busy.kind = Kind::busy;
  Instant now = kStart;
  for (int i = 0; i < 3; ++i) {
    expect_quiet(initiator.take(busy, now));
    now = initiator.due();
    EXPECT_EQ(now, kStart + (i + 1) * Connection::kBusyPause);
    const Step again = initiator.expire(now);
    expect_sent(again, Kind::req);
    EXPECT_EQ(*again.send, *asked.send);
  }
  now = kStart + Connection::kAnswerAtMost;
  const Step gone = initiator.expire(now);
  expect_told(gone, Event::unreachable, -ETIMEDOUT);
  expect_sent(gone, Kind::rej);
}

TEST(Connection, LosesItsPeerInEachState) {
  Connection requesting = routed();
  expect_sent(requesting.connect(request_to_v4(), kOurs, {}, kStart), Kind::req);
  expect_told(requesting.lose(Status::refused, kStart), Event::rejected, 28);
  Ends replied;
  replied.shake();
  expect_told(replied.responder.lose(Status::silent, kStart), Event::unreachable, -ETIMEDOUT);
  expect_told(replied.initiator.lose(Status::restarted, kStart), Event::rejected, 28);
  Ends connected;
  connected.connect();
  EXPECT_TRUE(connected.initiator.needs_peer());
  expect_told(connected.initiator.lose(Status::silent, kStart), Event::disconnected);
  EXPECT_FALSE(connected.initiator.needs_peer());
  expect_quiet(connected.initiator.lose(Status::silent, kStart));
}

TEST(Connection, LosesItsDeviceOnceInEachState) {
  Connection requesting = routed();
  expect_sent(requesting.connect(request_to_v4(), kOurs, {}, kStart), Kind::req);
  expect_told(requesting.lose_device(kStart), Event::device_removal);
  EXPECT_EQ(requesting.due(), kNever);
  EXPECT_FALSE(requesting.needs_peer());
  expect_quiet(requesting.lose_device(kStart));
  Ends connected;
  connected.connect();
  expect_told(connected.initiator.lose_device(kStart), Event::device_removal);
  expect_quiet(connected.initiator.lose(Status::silent, kStart));
  EXPECT_EQ(connected.initiator.due(), kStart + Connection::kHeedsAtMost);
  EXPECT_TRUE(connected.initiator.expire(connected.initiator.due()).fails_pair);
  expect_told(connected.responder.lose_device(kStart), Event::device_removal);
  expect_quiet(connected.responder.disconnect(kStart));
  EXPECT_EQ(connected.responder.due(), kNever) << "the program has heeded it";
}

// Otherwise a peer that says so again and again would make us ask all peers each time.
TEST(Connection, HearsOnlyOnceThatItsPeerHasForgottenIt) {
  Message forgotten;
  forgotten.kind = Kind::dreq;
  forgotten.reason = std::to_underlying(Reason::invalid_comm_id);
  Ends ends;
  ends.connect();
  EXPECT_TRUE(ends.initiator.take(forgotten, kStart).has_forgotten);
  EXPECT_FALSE(ends.initiator.take(forgotten, kStart).has_forgotten);
  expect_sent(ends.initiator.disconnect(kStart), Kind::drep);
  EXPECT_FALSE(ends.initiator.take(forgotten, kStart).has_forgotten);
  expect_sent(ends.responder.disconnect(kStart), Kind::dreq);
  EXPECT_TRUE(ends.responder.take(forgotten, kStart).has_forgotten) << "both left at once";
  EXPECT_FALSE(ends.responder.take(forgotten, kStart).has_forgotten);
  Ends others;
  others.connect();
  EXPECT_FALSE(others.responder.take(*others.initiator.destroy(), kStart).has_forgotten) << "it only leaves";
}

// A program that waits only for completions, and ignores events, learns of the end by its queue pair.
TEST(Connection, FailsThePairOfAProgramThatDoesNotHeedTheEnd) {
  const Instant later = kStart + Connection::kHeedsAtMost;
  Ends lost;
  lost.connect();
  expect_told(lost.initiator.lose(Status::silent, kStart), Event::disconnected);
  expect_told(lost.initiator.expire(kStart + Connection::kRest), Event::timewait_exit);
  EXPECT_EQ(lost.initiator.due(), later);
  EXPECT_TRUE(lost.initiator.expire(later).fails_pair);
  EXPECT_EQ(lost.initiator.due(), kNever);

  Ends left;
  left.connect();
  expect_told(left.responder.take(*left.initiator.destroy(), kStart), Event::disconnected);
  EXPECT_TRUE(left.responder.expire(kStart + Connection::kHeedsAtMost).fails_pair);
  EXPECT_EQ(left.responder.due(), kNever);
  expect_sent(left.responder.disconnect(later), Kind::drep);
}

// A peer that disconnects usually ends soon after. That must not give the program more time.
TEST(Connection, FailsThePairInTimeThoughThePeerEndsAfterItsDisconnect) {
  const Instant later = kStart + Connection::kHeedsAtMost;
  for (const Duration after : {Duration(0ms), Duration(6s), Connection::kHeedsAtMost - 1ms}) {
    Ends left;
    left.connect();
    expect_told(left.responder.take(*left.initiator.disconnect(kStart).send, kStart), Event::disconnected);
    expect_quiet(left.responder.lose(Status::refused, kStart + after));
    Instant failed = kNever;
    for (Instant now = left.responder.due(); now != kNever && failed == kNever; now = left.responder.due()) {
      if (left.responder.expire(now).fails_pair) failed = now;
    }
    EXPECT_GE(failed, later);
    EXPECT_LE(failed, later + Connection::kRest);
    EXPECT_EQ(left.responder.due(), kNever);
  }
}

TEST(Connection, LeavesThePairOfAProgramThatHeedsTheEnd) {
  for (const Duration after : {Duration(0ms), Connection::kRest}) {
    Ends lost;
    lost.connect();
    expect_told(lost.initiator.lose(Status::silent, kStart), Event::disconnected);
    if (after != 0ms) expect_told(lost.initiator.expire(kStart + after), Event::timewait_exit);
    EXPECT_EQ(lost.initiator.disconnect(kStart + after).error, 0);
    while (lost.initiator.due() != kNever) EXPECT_FALSE(lost.initiator.expire(lost.initiator.due()).fails_pair);
  }
  Ends left;
  left.connect();
  expect_told(left.responder.take(*left.initiator.destroy(), kStart), Event::disconnected);
  expect_sent(left.responder.disconnect(kStart), Kind::drep);
  while (left.responder.due() != kNever) EXPECT_FALSE(left.responder.expire(left.responder.due()).fails_pair);
}

TEST(Connection, WaitsForAPeerThatDoesNotAnswerOnlySoLong) {
  Ends ends;
  ends.connect();
  expect_sent(ends.initiator.disconnect(kStart), Kind::dreq);
  expect_told(ends.initiator.expire(kStart + Connection::kLeaveAtMost), Event::disconnected, -ETIMEDOUT);
  Ends half;
  half.shake();
  expect_told(half.responder.expire(kStart + Connection::kReadyAtMost), Event::unreachable, -ETIMEDOUT);
}

TEST(Connection, TellsThePeerWhenItsIdGoes) {
  Ends ends;
  EXPECT_FALSE(ends.initiator.destroy().has_value());
  Ends asking;
  expect_sent(asking.initiator.connect(request_to_v4(), kOurs, {}, kStart), Kind::req);
  EXPECT_EQ(asking.initiator.destroy()->kind, Kind::rej);
  Ends connected;
  connected.connect();
  const auto last = connected.initiator.destroy();
  EXPECT_EQ(last->kind, Kind::dreq);
  expect_told(connected.responder.take(*last, kStart), Event::disconnected);
  EXPECT_EQ(connected.responder.destroy()->kind, Kind::drep);
}

TEST(Connection, RefusesWhatItsStateHasNot) {
  Connection idle(1, 1, false);
  EXPECT_EQ(idle.resolve_route(0).error, EINVAL);
  EXPECT_EQ(idle.connect(request_to_v4(), kOurs, {}, kStart).error, EINVAL);
  EXPECT_EQ(idle.accept(&kOurs, {}, kStart).error, EINVAL);
  EXPECT_EQ(idle.reject(Reason::consumer_defined, {}).error, EINVAL);
  EXPECT_EQ(idle.disconnect(kStart).error, EINVAL);
  EXPECT_EQ(idle.establish().error, EINVAL);
  Connection ready = routed();
  PrivateData much;
  much.length = 57;  // one byte more than a request can carry besides the IP header
  EXPECT_EQ(ready.connect(request_to_v4(), kOurs, much, kStart).error, EINVAL);
  EXPECT_EQ(ready.listen().error, EINVAL);
  EXPECT_EQ(ready.bind().error, EINVAL);
  EXPECT_EQ(ready.state(), State::routed);
}

TEST(Connection, OfDatagramsIsARequestAndOneAnswer) {
  Connection initiator = routed(true);
  const Step asked = initiator.connect(request_to_v4(), kOurs, words("hello"), kStart);
  expect_sent(asked, Kind::sidr_req);
  EXPECT_EQ(Connection::request_told(*asked.send).data.length, 180);
  Connection responder = Connection::answering(*asked.send, 2, 200);
  EXPECT_TRUE(responder.is_datagram());
  Terms terms = kTheirs;
  terms.qkey = 0x1234;
  const Step answered = responder.accept(&terms, {}, kStart);
  expect_sent(answered, Kind::sidr_rep);
  const Step told = initiator.take(*answered.send, kStart);
  expect_told(told, Event::established);
  EXPECT_EQ(told.tell->terms.qp_num, 0x22U);
  EXPECT_EQ(told.tell->terms.qkey, 0x1234U);
  Connection refused = routed(true);
  expect_sent(refused.connect(request_to_v4(), kOurs, {}, kStart), Kind::sidr_req);
  expect_told(refused.fail(Kind::sidr_req, Status::refused, kStart + Connection::kNobodyAtMost), Event::unreachable, 1);
}

// Any message in any state: nothing breaks, and the end is reported once.
TEST(Connection, TakesAnyMessageInAnyState) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    unsigned state = seed * 2654435761U;
    const auto roll = [&state](unsigned below) { return (state = state * 1664525U + 1013904223U) / 7 % below; };
    Ends ends;
    if (roll(3) == 0) ends.shake();
    if (roll(3) == 0 && ends.initiator.state() == State::routed) ends.connect();
    Instant now = kStart;
    int ended = 0;
    for (unsigned i = 0; i < 12; ++i) {
      Message message;
      message.kind = static_cast<Kind>(1 + roll(kKinds - 1));
      message.from = 2;
      now += 1s * static_cast<int>(roll(40));
      Step step = roll(4) == 0 ? ends.initiator.expire(now) : ends.initiator.take(message, now);
      if (roll(6) == 0) step = ends.initiator.disconnect(now);
      EXPECT_TRUE(step.error == 0 || step.error == EINVAL);
      if (step.tell && (step.tell->event == Event::disconnected || step.tell->event == Event::rejected ||
                        step.tell->event == Event::unreachable)) {
        ++ended;
      }
    }
    EXPECT_LE(ended, 1) << "seed " << seed;
  }
}

}  // namespace
}  // namespace fairlead::rdma_cm
