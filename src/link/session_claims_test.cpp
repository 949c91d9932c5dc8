// Which claims of peers and strangers a session believes: hellos, cookies, retries, resets, tokens and echoes.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "link/world_for_tests.hpp"
#include "wire/hello.hpp"
#include "wire/segment.hpp"

namespace fairlead::link::testing {
namespace {

std::uint64_t refusals(const World::End& end, Refusal refusal) {
  return end.link->counters().refused[static_cast<std::size_t>(refusal)];
}

std::vector<std::byte> bare(wire::Kind kind, std::uint64_t token) {
  wire::Header header;
  header.kind = kind;
  header.token = token;
  std::vector<std::byte> bytes(wire::kSegmentHeaderBytes);
  wire::encode(header, bytes.data());
  wire::add_checksum(bytes, {});
  return bytes;
}

std::vector<std::byte> hello(std::uint64_t epoch, std::uint64_t token, std::uint64_t cookie = 0) {
  wire::Header header;
  header.kind = wire::Kind::hello;
  header.token = cookie;
  std::vector<std::byte> bytes(wire::kSegmentHeaderBytes + wire::kHelloBytes);
  wire::encode(header, bytes.data());
  wire::encode(wire::Hello{.epoch = epoch,
                           .token = token,
                           .window_bytes = 1 << 20,
                           .initial_sequence = {5},
                           .datagram_size_max = 1472,
                           .window_segments = 64,
                           .reassembly_slots = 4,
                           .ack_after = {}},
               bytes.data() + wire::kSegmentHeaderBytes);
  wire::add_checksum(bytes, {});
  return bytes;
}

/// Returns what an end has to send now, one datagram per train.
std::vector<std::vector<std::byte>> said(Link& link, Instant now) {
  std::vector<std::vector<std::byte>> all;
  for (Train train; link.next_train(now, 65'000, 1, train);) {
    std::vector<std::byte>& bytes = all.emplace_back();
    for (std::size_t i = 0; i < train.piece_count; ++i) {
      const auto* begin = static_cast<const std::byte*>(train.pieces[i].iov_base);
      bytes.insert(bytes.end(), begin, begin + train.pieces[i].iov_len);
    }
  }
  return all;
}

/// Returns the cookie that a link gives this sender for this hello; 0 if none.
std::uint64_t cookie_for(Link& link, const base::SocketAddress& from, std::uint64_t epoch, std::uint64_t token,
                         Instant now) {
  link.receive(from, hello(epoch, token), now, kPathDatagram);
  for (const auto& bytes : said(link, now)) {
    const auto frame = wire::decode(bytes);
    if (frame->header.kind == wire::Kind::hello_retry && frame->header.token == token)
      return wire::read_retry(frame->payload);
  }
  return 0;
}

TEST(LinkSession, HalfOpenPeersAreForgotten) {
  World world(2);
  world.weather.drops = [](std::size_t from, auto bytes) {
    return from == 1 && header_of(bytes).kind != wire::Kind::hello_retry;
  };
  world.send(0, 1, 8);
  world.run_until_ended();
  world.run_for(5s);
  EXPECT_EQ(world.ends[1].link->peer_count(), 0U);
  EXPECT_EQ(world.ends[1].link->next_deadline(), base::kNever);
  EXPECT_TRUE(world.ends[1].notices.empty());
}

TEST(LinkSession, HalfOpenPeersAreBounded) {
  LinkOptions options;
  options.half_open_max = 10;
  World world(3, options);
  Link& link = *world.ends[0].link;
  for (std::uint16_t port = 1; port <= 1000; ++port) {
    base::SocketAddress from = world.ends[1].address;
    from.port = port;
    link.receive(from, hello(port, port, cookie_for(link, from, port, port, world.now)), world.now, kPathDatagram);
    world.now += 1ms;
  }
  EXPECT_EQ(link.peer_count(), 10U);
  EXPECT_EQ(link.counters().half_open_dropped, 990U);
  world.expect_consistent();
}

TEST(LinkSession, AForgedOrLateHelloEndsNothing) {
  World world(8);
  open_session(world);
  const std::uint64_t opened = world.ends[1].link->counters().sessions_opened;
  for (std::uint64_t i = 1; i <= 100; ++i) world.inject(0, 1, hello(i, i << 20));
  const std::uint64_t cookie = world.send(0, 1, 100'000);
  const std::uint64_t back = world.send(1, 0, 100'000);
  world.run_until_ended();
  EXPECT_EQ(world.ends[0].sent[cookie].status, Status::ok);
  EXPECT_EQ(world.ends[1].sent[back].status, Status::ok);
  EXPECT_EQ(world.ends[1].link->counters().sessions_opened, opened);
  EXPECT_EQ(world.ends[1].link->counters().sessions_lost, 0U);
  world.run_for(5s);
  EXPECT_EQ(world.ends[1].link->peer_count(), 1U);
}

TEST(LinkSession, NothingIsKeptOfAHelloWithoutACookie) {
  World world(20);
  Link& link = *world.ends[0].link;
  std::size_t answers = 0;
  for (std::uint32_t i = 1; i <= 100'000; ++i) {
    base::SocketAddress from = world.ends[1].address;
    from.port = static_cast<std::uint16_t>(i);
    from.ip[14] = static_cast<std::uint8_t>(i >> 8);
    link.receive(from, hello(i, i, i % 2 == 0 ? 0 : world.random()), world.now, kPathDatagram);
    for (const auto& bytes : said(link, world.now)) {
      EXPECT_LT(bytes.size(), hello(1, 1).size());
      EXPECT_EQ(header_of(bytes).kind, wire::Kind::hello_retry);
      ++answers;
    }
    world.now += 5us;
  }
  EXPECT_EQ(link.peer_count(), 0U);
  EXPECT_EQ(link.next_deadline(), base::kNever);
  EXPECT_EQ(link.counters().hello_retries_sent, answers);
  EXPECT_EQ(link.counters().hello_retries_sent + link.counters().answers_withheld, 100'000U);
  EXPECT_LT(answers, 12'000U);  // of half a second
  world.expect_consistent();
}

TEST(LinkSession, AHelloThatShowsItsCookieIsAnswered) {
  World world(21);
  Link& link = *world.ends[0].link;
  const base::SocketAddress& from = world.ends[1].address;
  const std::uint64_t cookie = cookie_for(link, from, 5, 6, world.now);
  ASSERT_NE(cookie, 0U);
  link.receive(from, hello(5, 7, cookie), world.now, kPathDatagram);  // another hello's
  EXPECT_EQ(link.peer_count(), 0U);
  EXPECT_EQ(header_of(said(link, world.now).at(0)).kind, wire::Kind::hello_retry);
  link.receive(from, hello(5, 6, cookie), world.now, kPathDatagram);
  EXPECT_EQ(link.peer_count(), 1U);
  EXPECT_EQ(header_of(said(link, world.now).at(0)).kind, wire::Kind::hello_ack);
  link.receive(from, hello(5, 6, cookie), world.now + 1s, kPathDatagram);  // the answer was lost
  EXPECT_EQ(header_of(said(link, world.now + 1s).at(0)).kind, wire::Kind::hello_ack);
}

TEST(LinkSession, AForgedHelloWhileASessionOpensEndsNothing) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    World world(seed);
    int words = 0;
    world.weather.drops = [&](std::size_t, auto bytes) {  // after each word of the two, hellos in the name of both
      if (header_of(bytes).kind == wire::Kind::data || ++words > 20) return false;
      for (const std::size_t to : {0UL, 1UL})
        world.inject(1 - to, to, hello(world.random() | 1, world.random() | 1, world.random()), seed * 3us + 1us);
      return false;
    };
    const std::uint64_t cookie = world.send(0, 1, 8);
    world.run_until_ended();
    EXPECT_EQ(world.ends[0].sent[cookie].status, Status::ok) << seed;
    EXPECT_EQ(world.ends[0].link->counters().sessions_opened, 1U) << seed;
    EXPECT_EQ(world.ends[1].link->counters().sessions_opened, 1U) << seed;
    EXPECT_GE(world.ends[1].link->counters().hellos_received, 3U) << seed;
  }
}

TEST(LinkSession, ARetryThatNobodyAskedForIsRefused) {
  World world(22);
  std::uint64_t offered = 0;
  world.weather.drops = [&](std::size_t, auto bytes) {
    offered = wire::read_hello(wire::decode(bytes)->payload).token;
    return true;
  };
  world.send(0, 1, 8);
  world.run_for(1ms);
  const auto retry = [](std::uint64_t token) {
    wire::Header header;
    header.kind = wire::Kind::hello_retry;
    header.token = token;
    std::vector<std::byte> bytes(wire::kSegmentHeaderBytes + wire::kRetryBytes);
    wire::encode(header, bytes.data());
    wire::encode_retry(99, bytes.data() + wire::kSegmentHeaderBytes);
    wire::add_checksum(bytes, {});
    return bytes;
  };
  Link& link = *world.ends[0].link;
  link.receive(world.ends[1].address, retry(offered ^ 1U << 30), world.now, kPathDatagram);
  base::SocketAddress elsewhere = world.ends[1].address;
  ++elsewhere.port;
  link.receive(elsewhere, retry(offered), world.now, kPathDatagram);
  EXPECT_EQ(refusals(world.ends[0], Refusal::late_hello_ack), 2U);
  EXPECT_TRUE(said(link, world.now).empty());
  // A peer that gives cookies and never accepts them gets one hello between two repeats, not one for each cookie.
  for (int i = 0; i < 1000; ++i) link.receive(world.ends[1].address, retry(offered), world.now, kPathDatagram);
  const auto answers = said(link, world.now);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(header_of(answers[0]).kind, wire::Kind::hello);
  EXPECT_EQ(header_of(answers[0]).token, 99U);
}

TEST(LinkSession, ALostRetryOrALostHelloWithItsCookieIsMadeGood) {
  for (const wire::Kind lost : {wire::Kind::hello_retry, wire::Kind::hello, wire::Kind::hello_ack}) {
    World world(23);
    int count = 0;
    world.weather.drops = [&](std::size_t, auto bytes) { return header_of(bytes).kind == lost && ++count % 3 != 0; };
    world.send(0, 1, 100);
    world.run_until_ended();
    world.expect_all_delivered();
    EXPECT_EQ(world.ends[1].link->counters().sessions_opened, 1U);
  }
}

TEST(LinkSession, StrangersDoNotKeepPeersFromBeingServed) {
  World world(24);
  open_session(world);
  const std::uint64_t cookie = world.send(0, 1, 1000 * 1000);
  Link& link = *world.ends[0].link;
  for (std::uint32_t i = 1; i <= 200; ++i) {
    base::SocketAddress from = world.ends[1].address;
    from.ip[14] = static_cast<std::uint8_t>(i);
    link.receive(from, hello(i, i), world.now, kPathDatagram);
  }
  Train train;
  std::uint32_t of_data = 0;
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(link.next_train(world.now, 65'000, 1, train));
    of_data += train.to == world.ends[1].address;
  }
  EXPECT_GE(of_data, 5U);
  world.run_until_ended();
  EXPECT_EQ(world.ends[0].sent[cookie].status, Status::ok);
  EXPECT_EQ(link.counters().hello_retries_sent, 200U);
}

TEST(LinkSession, AForgedResetOrCloseEndsNothing) {
  World world(9);
  std::uint64_t token_of_0 = 0, token_of_1 = 0;  // that their segments must carry
  world.weather.drops = [&](std::size_t from, auto bytes) {
    if (header_of(bytes).kind == wire::Kind::data) (from == 0 ? token_of_1 : token_of_0) = header_of(bytes).token;
    return false;
  };
  open_session(world);
  world.weather.drops = nullptr;
  for (int i = 0; i < 1000; ++i) {
    world.inject(1, 0, bare(wire::Kind::reset, world.random() | 1));
    world.inject(1, 0, bare(wire::Kind::close, world.random() | 1));
  }
  world.inject(1, 0, bare(wire::Kind::reset, token_of_0));  // what the other side's segments carry proves nothing
  world.run_for(1ms);
  EXPECT_EQ(refusals(world.ends[0], Refusal::unproven_reset), 1001U);
  EXPECT_EQ(world.ends[0].link->counters().sessions_lost, 0U);
  world.inject(1, 0, bare(wire::Kind::reset, token_of_1));
  world.run_for(1ms);
  EXPECT_EQ(world.ends[0].link->counters().sessions_lost, 1U);
}

TEST(LinkSession, ARightTokenFromAWrongAddressIsRefused) {
  World world(10, {}, 3);
  std::vector<std::byte> kept;
  world.weather.drops = [&](std::size_t from, auto bytes) {
    if (from == 0 && header_of(bytes).kind == wire::Kind::data) kept.assign(bytes.begin(), bytes.end());
    return false;
  };
  open_session(world);
  world.inject(2, 1, kept);
  world.run_for(1ms);
  EXPECT_EQ(refusals(world.ends[1], Refusal::wrong_address), 1U);
  EXPECT_EQ(world.ends[1].link->counters().resets_sent, 0U);
}

TEST(LinkSession, EveryBitOfATokenIsSecret) {
  World world(25);
  Link& link = *world.ends[0].link;
  std::uint64_t ever_set = 0, always_set = ~std::uint64_t{0};
  for (std::uint64_t i = 1; i <= 200; ++i) {
    base::SocketAddress to = world.ends[1].address;
    to.port = static_cast<std::uint16_t>(i);
    ASSERT_EQ(link.submit(link.peer(to, kPathDatagram, world.now).value(), {.wants_outcome = false}, world.now),
              Status::ok);
  }
  for (const auto& bytes : said(link, world.now)) {
    const std::uint64_t token = wire::read_hello(wire::decode(bytes)->payload).token;
    ever_set |= token;
    always_set &= token;
  }
  EXPECT_EQ(ever_set, ~std::uint64_t{0});
  EXPECT_EQ(always_set, 0U);
}

TEST(LinkSession, ARightTokenInAWrongSlotIsUnknown) {
  World world(26);
  std::vector<std::byte> kept;
  world.weather.drops = [&](std::size_t from, auto bytes) {
    if (from == 0 && header_of(bytes).kind == wire::Kind::data) kept.assign(bytes.begin(), bytes.end());
    return false;
  };
  open_session(world);
  const auto in_slot = [&](std::uint32_t slot) {
    wire::Header header = header_of(kept);
    header.slot = slot;
    std::vector<std::byte> bytes = kept;
    wire::encode(header, bytes.data());
    wire::add_checksum(bytes, {});
    return bytes;
  };
  for (const std::uint32_t slot : {1U, 77U, wire::kSlotsMost - 1}) world.inject(0, 1, in_slot(slot));
  world.inject(0, 1, in_slot(0));
  world.run_for(1ms);
  EXPECT_EQ(refusals(world.ends[1], Refusal::unknown_token), 3U);
  EXPECT_EQ(refusals(world.ends[1], Refusal::too_old), 1U);
}

TEST(LinkSession, EchoesThatWereNeverSentDoNotStopTheTimers) {
  World world(14);
  open_session(world);
  std::vector<std::byte> kept;
  world.weather.drops = [&](std::size_t from, auto bytes) {
    if (from == 1) kept.assign(bytes.begin(), bytes.end());
    return false;
  };
  world.send(0, 1, 8);
  world.run_until_ended();
  for (std::uint32_t i = 1; i < 200; ++i) {
    wire::Header header = header_of(kept);
    header.echo.value -= i * 10'000'000;
    header.echo_delay.value = 0;
    wire::encode(header, kept.data());
    wire::add_checksum(kept, {});
    world.inject(1, 0, kept);
  }
  world.run_for(1ms);
  world.weather.drops = [](std::size_t, auto) { return true; };
  world.send(0, 1, 8);
  world.run_for(1s);
  EXPECT_GE(world.ends[0].link->counters().resends, 3U);
}

}  // namespace
}  // namespace fairlead::link::testing
