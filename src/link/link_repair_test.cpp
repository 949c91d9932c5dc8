// Loss, duplication and reordering: tests for usnic's weak points (docs/link.md).

#include "link/token_source.hpp"
#include "link/world_for_tests.hpp"
#include "wire/segment.hpp"

namespace fairlead::link::testing {
namespace {

bool is_data(std::span<const std::byte> bytes) {
  return header_of(bytes).kind == wire::Kind::data;
}

/// A seed with which the first session's sequences wrap soon: its second number is the initial sequence.
std::uint64_t seed_that_wraps_soon(std::uint64_t epoch) {
  for (std::uint64_t seed = 1; seed < 10'000'000; ++seed) {
    TokenSource tokens(seed, epoch);
    tokens.next();
    if (static_cast<std::uint32_t>(tokens.next()) >= 0xfffff000U) return seed;
  }
  return 0;
}

TEST(LinkRepair, SequencesWrapWithAFullWindow) {
  LinkOptions options;
  options.window_segments = 1024;
  options.window_bytes = options.first_bytes = 64 << 20;
  World world(1, options);
  world.link_seed = seed_that_wraps_soon(77);
  ASSERT_NE(*world.link_seed, 0U);
  world.ends[0].link = std::make_unique<Link>(options, 77, *world.link_seed);
  bool has_wrapped = false, was_before = false;
  world.weather.loss = 0.01;
  world.weather.drops = [&](std::size_t from, auto bytes) {
    if (from == 0 && is_data(bytes)) {
      const std::uint32_t sequence = header_of(bytes).sequence.value;
      was_before |= sequence >= 0xfffff000U;
      has_wrapped |= was_before && sequence < 0x1000U;
    }
    return false;
  };
  for (int i = 0; i < 10; ++i) world.send(0, 1, 1 << 20);
  world.run_until_ended();
  world.expect_all_delivered();
  EXPECT_TRUE(has_wrapped);
  EXPECT_GE(world.ends[0].link->counters().window_segments_most, 1000U);
}

TEST(LinkRepair, TheWindowIsFilledToItsEdgeAndNoFurther) {
  LinkOptions options;
  options.window_segments = 64;
  options.window_bytes = options.first_bytes = 64 << 20;
  options.command_reserve = 0;
  World world(2, options);
  open_session(world);
  world.weather.drops = [](std::size_t from, auto) { return from == 1; };
  world.send(0, 1, 1 << 20);
  world.run_for(100us);
  EXPECT_EQ(world.ends[0].link->facts(world.peer(0, 1)).segments_in_flight, 64U);
  world.weather.drops = nullptr;
  world.run_until_ended();
  world.expect_all_delivered();
  EXPECT_EQ(world.ends[1].link->counters().refused[static_cast<std::size_t>(Refusal::too_new)], 0U);
}

TEST(LinkRepair, TheWindowIsBoundedInBytesAsTheReceiverAsked) {
  LinkOptions options;
  options.window_bytes = 100'000;
  World world(3, options);
  open_session(world);
  world.send(0, 1, 1 << 20);
  world.run_until_ended();
  EXPECT_LE(world.ends[0].link->counters().window_bytes_most, 100'000U);
  EXPECT_GE(world.ends[0].link->counters().window_bytes_most, 60'000U);
}

TEST(LinkRepair, BulkLeavesRoomForTinyMessages) {
  LinkOptions options;
  options.window_segments = 64;
  World world(4, options);
  open_session(world);
  world.weather.drops = [](std::size_t from, auto) { return from == 1; };
  world.send(0, 1, 1 << 20);
  world.run_for(50us);
  const std::uint64_t tiny = world.send(0, 1, 8);
  world.run_for(50us);
  EXPECT_TRUE(world.ends[1].received[tiny].is_complete);
}

TEST(LinkRepair, DuplicatesAreCountedAcknowledgedAndDropped) {
  World world(5);
  open_session(world);
  world.weather.repeat = 1;
  for (int i = 0; i < 20; ++i) world.send(0, 1, 3000);
  world.run_until_ended();
  world.run_for(1ms);
  world.expect_all_delivered();
  const LinkCounters& counters = world.ends[1].link->counters();
  EXPECT_GE(counters.refused[static_cast<std::size_t>(Refusal::duplicate)] +
                counters.refused[static_cast<std::size_t>(Refusal::too_old)],
            60U);
}

TEST(LinkRepair, OldAndTooNewSegmentsAreRefused) {
  World world(6);
  open_session(world);
  std::vector<std::byte> kept;
  world.weather.drops = [&](std::size_t from, auto bytes) {
    if (from == 0 && is_data(bytes) && kept.empty()) kept.assign(bytes.begin(), bytes.end());
    return false;
  };
  world.send(0, 1, 8);
  world.run_until_ended();
  world.weather.drops = nullptr;
  const auto inject_with_sequence = [&](std::int32_t change) {
    std::vector<std::byte> bytes = kept;
    wire::Header header = header_of(bytes);
    header.sequence.value += static_cast<std::uint32_t>(change);
    wire::encode(header, bytes.data());
    wire::add_checksum(bytes, {});
    world.inject(0, 1, bytes);
    world.run_for(1ms);
  };
  const LinkCounters& counters = world.ends[1].link->counters();
  const std::uint64_t delivered = counters.messages_delivered;
  inject_with_sequence(0);
  inject_with_sequence(-1000);
  EXPECT_EQ(counters.refused[static_cast<std::size_t>(Refusal::too_old)], 2U);
  inject_with_sequence(1025);
  inject_with_sequence(1 << 30);
  EXPECT_EQ(counters.refused[static_cast<std::size_t>(Refusal::too_new)], 2U);
  EXPECT_EQ(counters.messages_delivered, delivered);
  world.expect_consistent();
}

TEST(LinkRepair, AnAckBeyondWhatWasSentCountsForNothing) {
  World world(7);
  open_session(world);
  std::vector<std::byte> kept;
  world.weather.drops = [&](std::size_t from, auto bytes) {
    if (from == 1 && kept.empty()) kept.assign(bytes.begin(), bytes.end());
    return from == 1;
  };
  const std::uint64_t cookie = world.send(0, 1, 8);
  world.run_for(200us);
  ASSERT_FALSE(kept.empty());
  const auto inject_ack = [&](std::uint32_t further, std::uint64_t bitmap) {
    std::vector<std::byte> bytes = kept;
    wire::Header header = header_of(bytes);
    header.ack.value += further;
    header.ack_bitmap = bitmap;
    wire::encode(header, bytes.data());
    wire::add_checksum(bytes, {});
    world.inject(1, 0, bytes);
    world.run_for(10us);
  };
  const LinkCounters& counters = world.ends[0].link->counters();
  inject_ack(1, 0);
  inject_ack(0x7fffffff, 0);
  inject_ack(0, 1);
  inject_ack(std::uint32_t(-1), std::uint64_t{1} << 40);
  EXPECT_EQ(counters.refused[static_cast<std::size_t>(Refusal::ack_beyond_sent)], 4U);
  EXPECT_FALSE(world.ends[0].sent[cookie].is_ended);
  inject_ack(std::uint32_t(-1), 0);  // an older ACK, which acknowledges less
  EXPECT_EQ(counters.acks_old + counters.acks_repeated, 1U);
  EXPECT_FALSE(world.ends[0].sent[cookie].is_ended);
  world.weather.drops = nullptr;
  world.run_until_ended();
  world.expect_all_delivered();
}

TEST(LinkRepair, AnAckForASegmentOnTheResendListTakesItOff) {
  LinkOptions options;
  options.give_up_after = std::chrono::hours(1);
  World world(8, options);
  open_session(world);
  std::vector<std::byte> ack;
  world.weather.drops = [&](std::size_t from, auto bytes) {
    if (from == 1) ack.assign(bytes.begin(), bytes.end());
    return from == 1;
  };
  world.send(0, 1, 8);
  world.run_for(30us);
  Link& link = *world.ends[0].link;
  world.run_for(50us);
  ASSERT_FALSE(ack.empty());
  link.expire(world.now + 10ms);  // past its deadline: it is found lost, and waits for its resend
  link.receive(world.ends[1].address, ack, world.now + 10ms, kPathDatagram);
  world.now += 10ms;
  const std::uint64_t resent = link.counters().resends;
  Train train;
  EXPECT_FALSE(link.next_train(world.now, 65'000, 64, train));
  EXPECT_EQ(link.counters().resends, resent);
  world.run_until_ended();
  EXPECT_EQ(link.counters().segments_in_flight, 0U);
}

TEST(LinkRepair, ResendStormOf1000SegmentsWithOneLossInAHundred) {
  LinkOptions options;
  options.window_bytes = options.first_bytes = 64 << 20;
  World world(9, options);
  open_session(world);
  std::uint64_t count = 0;
  world.weather.drops = [&](std::size_t from, auto bytes) { return from == 0 && is_data(bytes) && ++count % 100 == 0; };
  const base::Instant begin = world.now;
  const std::uint64_t cookie = world.send(0, 1, 1000 * 1352);
  world.run_until_ended();
  world.expect_all_delivered();
  const LinkCounters& counters = world.ends[0].link->counters();
  EXPECT_LE(counters.resends, 14U);  // the ten lost, one of them again, and a tail probe
  EXPECT_LE(world.ends[0].sent[cookie].ended - begin, 2ms);
}

TEST(LinkRepair, ABurstOf40LostSegmentsIsRepairedInAFewRoundTrips) {
  World world(10);
  open_session(world);
  std::uint64_t count = 0;
  world.weather.drops = [&](std::size_t from, auto bytes) {
    if (from != 0 || !is_data(bytes)) return false;
    ++count;
    return count > 100 && count <= 140;
  };
  const base::Instant begin = world.now;
  const std::uint64_t cookie = world.send(0, 1, 400 * 1352);
  world.run_until_ended();
  world.expect_all_delivered();
  EXPECT_EQ(world.ends[0].link->counters().resends, 40U);
  EXPECT_LE(world.ends[0].sent[cookie].ended - begin, 500us);
}

TEST(LinkRepair, TenPercentLossBothWays) {
  World world(11);
  world.weather.loss = 0.1;
  for (int i = 0; i < 300; ++i) {
    world.send(0, 1, 5000);
    world.send(1, 0, 64);
  }
  world.run_until_ended();
  world.expect_all_delivered();
}

TEST(LinkRepair, LossOfHalfTheAcksAlone) {
  World world(12);
  open_session(world);
  world.weather.drops = [&](std::size_t from, auto bytes) {
    return from == 1 && header_of(bytes).kind == wire::Kind::ack && world.random() % 2 == 0;
  };
  for (int i = 0; i < 300; ++i) world.send(0, 1, 5000);
  world.run_until_ended();
  world.expect_all_delivered();
  const LinkCounters& counters = world.ends[0].link->counters();
  EXPECT_LE(counters.resends * 50, counters.segments_sent);  // a lost ACK is no lost segment
}

TEST(LinkRepair, ReorderingBy1To64CausesNoNeedlessResendInSteadyState) {
  for (std::uint64_t depth = 1; depth <= 64; depth *= 2) {
    World world(13 + depth);
    open_session(world);
    // 1 us from datagram to datagram, each up to `depth` us late.
    world.weather.spacing = 1us;
    world.weather.jitter = Duration(static_cast<std::int64_t>(depth) * 1000);
    const LinkCounters& counters = world.ends[0].link->counters();
    const auto send_rounds = [&](int rounds) {
      for (int round = 0; round < rounds; ++round) {
        world.send(0, 1, 64 * 1352);
        world.run_for(150us);
      }
    };
    send_rounds(30);
    const std::uint64_t sent_learning = counters.segments_sent, resent_learning = counters.resends_fast;
    send_rounds(100);
    world.run_until_ended();
    world.expect_all_delivered();
    EXPECT_GE(counters.segments_sent - sent_learning, 100U * 64);
    EXPECT_LE(resent_learning, 64U) << "reordering by " << depth;
    EXPECT_EQ(counters.resends_fast, resent_learning) << "reordering by " << depth;
  }
}

TEST(LinkRepair, LossesAmidTrafficBothWaysCauseNoNeedlessResend) {
  // ACKs ride on data, which tells of 64 segments only; with two holes further apart the rest must not count as lost.
  World world(31);
  open_session(world);
  world.weather.spacing = 1us;
  std::uint64_t dropped = 0;
  world.weather.drops = [&](std::size_t from, auto bytes) {
    const bool is_lost = from == 0 && is_data(bytes) && world.random() % 100 == 0;
    dropped += is_lost;
    return is_lost;
  };
  for (int i = 0; i < 20; ++i) {
    world.send(0, 1, 1 << 20);
    world.send(1, 0, 1 << 20);
  }
  world.run_until_ended();
  world.expect_all_delivered();
  const LinkCounters& counters = world.ends[0].link->counters();
  EXPECT_GE(dropped, 100U);
  EXPECT_LE(counters.resends, dropped + dropped / 20);
}

TEST(LinkRepair, ALostTailIsRepairedByAProbeNotByTheTimeout) {
  World world(14);
  open_session(world);
  for (int i = 0; i < 20; ++i) {
    bool is_dropped = false;
    world.weather.drops = [&](std::size_t from, auto bytes) {
      if (from != 0 || !is_data(bytes) || is_dropped) return false;
      is_dropped = true;
      return true;
    };
    const std::uint64_t cookie = world.send(0, 1, 64);
    const base::Instant begin = world.now;
    world.run_until_ended();
    EXPECT_TRUE(is_dropped);
    // Two round trips of 40 us and the ACK's delay, then the way there.
    EXPECT_LE(world.ends[1].received[cookie].completed - begin, 150us);
  }
  EXPECT_EQ(world.ends[0].link->counters().timeouts, 0U);
  EXPECT_EQ(world.ends[0].link->counters().resends_probe, 20U);
}

TEST(LinkRepair, TheTimeoutDoublesUpToItsCap) {
  World world(15);
  open_session(world);
  std::vector<base::Instant> sent;
  world.weather.drops = [&](std::size_t from, auto bytes) {
    if (from == 0 && is_data(bytes)) sent.push_back(world.now);
    return true;
  };
  world.send(0, 1, 64);
  world.run_for(3s);
  ASSERT_GE(sent.size(), 12U);
  EXPECT_LE(sent[1] - sent[0], 200us);
  for (std::size_t i = 3; i < sent.size(); ++i) {
    const Duration expected = std::min<Duration>(2 * (sent[i - 1] - sent[i - 2]), 200ms);
    EXPECT_NEAR(static_cast<double>((sent[i] - sent[i - 1]).count()), static_cast<double>(expected.count()), 1000.0);
  }
}

TEST(LinkRepair, AStaleDuplicateAfterTheWrapIsNotTakenForNew) {
  // A segment of an ended session: its token reveals it, whatever its sequence is.
  World world(16);
  open_session(world);
  std::vector<std::byte> kept;
  world.weather.drops = [&](std::size_t from, auto bytes) {
    if (from == 0 && is_data(bytes) && kept.empty()) kept.assign(bytes.begin(), bytes.end());
    return false;
  };
  world.send(0, 1, 8);
  world.run_until_ended();
  world.weather.drops = nullptr;
  world.ends[0].link->disconnect(world.peer(0, 1), world.now);
  world.run_for(1ms);
  world.send(0, 1, 8);
  world.run_until_ended();
  const LinkCounters& counters = world.ends[1].link->counters();
  const std::uint64_t delivered = counters.messages_delivered;
  for (std::uint32_t i = 0; i < 2000; ++i) {
    wire::Header header = header_of(kept);
    header.sequence.value = static_cast<std::uint32_t>(world.random());
    wire::encode(header, kept.data());
    wire::add_checksum(kept, {});
    world.inject(0, 1, kept);
  }
  world.run_for(1ms);
  EXPECT_EQ(counters.messages_delivered, delivered);
  EXPECT_EQ(counters.refused[static_cast<std::size_t>(Refusal::unknown_token)], 2000U);
  EXPECT_EQ(counters.resets_sent + counters.answers_withheld, 2000U);
  EXPECT_GE(counters.answers_withheld, 1000U);
}

// A link that believes them repairs a loss after seconds, and gives a peer up that answers.
TEST(LinkRepair, OldCopiesMeasureNoRoundTrip) {
  World world(25);
  open_session(world);
  std::vector<std::vector<std::byte>> kept;  // segments and ACKs, of both sides
  std::vector<std::size_t> senders;
  world.weather.drops = [&](std::size_t from, auto bytes) {
    kept.emplace_back(bytes.begin(), bytes.end());
    senders.push_back(from);
    return false;
  };
  for (int i = 0; i < 20; ++i) {
    for (const std::size_t from : {0, 1}) world.send(from, 1 - from, 100);
    world.run_until_ended();
  }
  world.weather.drops = nullptr;
  const std::uint64_t measured = world.ends[0].link->counters().round_trips_measured;
  world.run_for(1s);
  for (std::size_t i = 0; i < kept.size(); ++i) world.inject(senders[i], 1 - senders[i], kept[i]);
  world.run_for(10ms);
  for (const std::size_t end : {0, 1})
    EXPECT_LT(world.ends[end].link->facts(world.peer(end, 1 - end)).round_trip, 1ms) << end;
  EXPECT_EQ(world.ends[0].link->counters().round_trips_measured, measured);
  world.run_for(200s);  // by then the last echo looks later than the next one
  world.send(0, 1, 100);
  world.run_until_ended();
  EXPECT_GT(world.ends[0].link->counters().round_trips_measured, measured);
}

TEST(LinkRepair, APartitionHeals) {
  World world(17);
  open_session(world);
  world.weather.drops = [](std::size_t, auto) { return true; };
  for (int i = 0; i < 50; ++i) world.send(0, 1, 20'000);
  for (int i = 0; i < 50; ++i) world.send(1, 0, 100);
  world.run_for(3s);
  world.weather.drops = nullptr;
  world.run_until_ended(300ms);
  world.expect_all_delivered();
}

TEST(LinkRepair, DamagedDatagramsAreCountedAndRepaired) {
  World world(18);
  world.weather.damage = 0.05;
  for (int i = 0; i < 100; ++i) world.send(0, 1, 10'000);
  world.run_until_ended();
  world.expect_all_delivered();
  EXPECT_GT(world.ends[1].link->counters().malformed_sum(), 10U);
}

}  // namespace
}  // namespace fairlead::link::testing
