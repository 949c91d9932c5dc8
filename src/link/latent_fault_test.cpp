// Regression tests for the latent faults found by reading usnic's engine, and for those in its history (docs/link.md).
// An engine with the fault would fail its test. The address sanitizer makes them stricter.

#include "link/hotel.hpp"
#include "link/peer.hpp"
#include "link/receive_window.hpp"
#include "link/world_for_tests.hpp"
#include "wire/record.hpp"

namespace fairlead::link::testing {
namespace {

/// Closes the session of end 0 with 1, in any state of `world`. Afterwards end 0 must hold nothing, and still work.
void close_in_any_state(World& world) {
  Link& link = *world.ends[0].link;
  link.disconnect(world.peer(0, 1), world.now);
  EXPECT_EQ(link.counters().segments_in_flight, 0U);
  EXPECT_EQ(link.counters().messages_pending, 0U);
  world.weather = {};
  world.run_until_ended();
  world.expect_consistent();
  const std::uint64_t next = world.send(0, 1, 3000);
  world.run_until_ended();
  EXPECT_EQ(world.ends[0].sent[next].status, Status::ok);
}

std::uint64_t refusals_of(const World& world, std::size_t end, Refusal refusal) {
  return world.ends[end].link->counters().refused[static_cast<std::size_t>(refusal)];
}

// 1: a flush leaves the peer on the ready-to-send list.
TEST(LatentFault, AFlushedPeerStaysOnTheReadyList) {
  World world(1, {}, 3);
  open_session(world);
  world.send(0, 2, 8);
  world.run_until_ended();
  Link& link = *world.ends[0].link;
  for (int i = 0; i < 50; ++i) world.send(0, 1, i % 2 == 0 ? 8 : 5000);
  const std::uint64_t to_other = world.send(0, 2, 5000);
  link.disconnect(world.peer(0, 1), world.now);
  Train train;
  std::size_t closes = 0, bytes_to_other = 0;
  for (int trains = 0; link.next_train(world.now, 65'000, 64, train); ++trains) {
    ASSERT_LT(trains, 100);
    if (world.index_of(train.to) == 2) {
      bytes_to_other += train.bytes;
      continue;
    }
    ASSERT_EQ(world.index_of(train.to), 1U);
    EXPECT_TRUE(train.datagrams == 1 && train.bytes == wire::kSegmentHeaderBytes) << "data for a peer that was flushed";
    ++closes;
  }
  EXPECT_EQ(closes, 1U);
  EXPECT_GT(bytes_to_other, 5000U) << "the flush keeps back the data of another peer";
  world.run_until_ended();  // the network of the test did not carry those trains, so they are sent again
  EXPECT_EQ(world.ends[0].sent[to_other].status, Status::ok);
  EXPECT_TRUE(world.ends[2].received[to_other].is_complete);
}

// 2: the flush of a message sent in part takes its bytes off twice.
TEST(LatentFault, AFlushCountsAMessageSentInPartTwice) {
  World world(2);
  open_session(world);
  const std::uint64_t long_one = world.send(0, 1, 4 << 20);  // more than the window: some of it is out, some never was
  world.run_for(100us);
  EXPECT_GT(world.ends[0].link->counters().segments_in_flight, 0U);
  EXPECT_FALSE(world.ends[0].sent[long_one].is_ended);
  close_in_any_state(world);
  EXPECT_EQ(world.ends[0].sent[long_one].status, Status::canceled);
  EXPECT_EQ(world.ends[0].link->facts(world.peer(0, 1)).bytes_in_flight, 0U);
}

// 3: the table of senders keeps a pointer to a peer that was freed.
TEST(LatentFault, TheTableOfSendersKeepsADeadPeer) {
  World world(3);
  open_session(world);
  world.send(1, 0, 100'000);
  world.run_for(5us);  // on its way
  const PeerHandle before = world.peer(0, 1);
  world.ends[0].link->disconnect(before, world.now);
  EXPECT_EQ(world.ends[0].link->find(world.ends[1].address), std::nullopt);
  world.run_until_ended();
  EXPECT_GT(refusals_of(world, 0, Refusal::unknown_token), 0U);
  EXPECT_EQ(world.ends[0].link->submit(before, {.envelope = {}, .pieces = {}, .size = 0, .cookie = 7}, world.now),
            Status::stale);
  EXPECT_EQ(world.ends[0].link->facts(before).epoch, 0U);
}

// 4: the link does not check whether a peer is leaving, so its segments are delivered after its end.
TEST(LatentFault, WhatComesAfterTheEndIsDelivered) {
  World world(4);
  open_session(world);
  world.send(1, 0, 8);
  world.run_for(5us);
  const std::uint64_t delivered = world.ends[0].link->counters().messages_delivered;
  world.ends[0].link->disconnect(world.peer(0, 1), world.now);
  world.run_until_ended();
  EXPECT_EQ(world.ends[0].link->counters().messages_delivered, delivered);
  for (const auto& [cookie, sent] : world.ends[1].sent) EXPECT_TRUE(sent.is_ended);
}

// 5: a message of no bytes is complete before its ACK.
TEST(LatentFault, AMessageOfNoBytesEndsBeforeItsAck) {
  World world(5);
  open_session(world);
  world.weather.drops = [](std::size_t from, auto) { return from == 1; };
  const std::uint64_t cookie = world.send(0, 1, 0);
  world.run_for(50ms);
  EXPECT_FALSE(world.ends[0].sent[cookie].is_ended);
  world.weather.drops = nullptr;
  world.run_until_ended();
  world.expect_all_delivered();
}

// 6: an ACK for a segment never sent is used as an index into the table of sent segments.
TEST(LatentFault, AnAckOfWhatWasNeverSentIsFollowed) {
  World world(6);
  open_session(world);
  std::vector<std::byte> bogus;
  world.weather.drops = [&](std::size_t from, std::span<const std::byte> bytes) {
    if (from == 1 && bogus.empty()) bogus.assign(bytes.begin(), bytes.end());
    return false;
  };
  world.send(0, 1, 8);
  world.run_until_ended();
  ASSERT_FALSE(bogus.empty());
  wire::Header header = header_of(bogus);
  const wire::Sequence truth = header.ack;
  for (const std::uint32_t ahead : {1U, 2U, 1000U, 0x7fff'ffffU}) {
    header.ack = truth + ahead;
    wire::encode(header, bogus.data());
    wire::add_checksum(bogus, {});
    world.inject(1, 0, bogus);
    world.run_for(10us);
  }
  world.send(0, 1, 100'000);
  world.run_until_ended();
  EXPECT_EQ(refusals_of(world, 0, Refusal::ack_beyond_sent), 4U);
  world.expect_all_delivered();
}

// 7: statistics depend on a timer that exists only where peers are probed.
TEST(LatentFault, StatisticsNeedTheProbes) {
  World world(7);
  world.path_datagram = 1200;  // the least that a path must carry: nothing to probe
  world.send(0, 1, 100'000);
  world.run_until_ended();
  world.expect_all_delivered();
  EXPECT_EQ(world.ends[0].link->counters().probes_sent, 0U);
  EXPECT_GT(world.ends[0].link->counters().round_trips_measured, 0U);
  EXPECT_GT(world.ends[0].link->facts(world.peer(0, 1)).round_trip.count(), 0);
  world.expect_consistent();
}

// 8: broken orders: equality used as less-than, sequences compared as plain numbers.
TEST(LatentFault, AnOrderThatIsNone) {
  base::SocketAddress low, high;
  high.port = 1;
  EXPECT_TRUE(low < high);
  EXPECT_FALSE(high < low);
  EXPECT_FALSE(low < low);
  const wire::Sequence before{0xffff'ffff}, after{0};
  EXPECT_GT(wire::distance(before, after), 0);
  EXPECT_LT(wire::distance(after, before), 0);
  EXPECT_EQ(wire::distance(before, before), 0);
}

// History ------------------------------------------------------------------------------------------------------------

// The receiver's new ring begins where the previous one ended.
TEST(LatentFault, TheReceiveRingBeginsWhereTheOneBeforeEnded) {
  ReceiveWindow window;
  window.open({100}, 64);
  for (const std::uint32_t ahead : {103U, 110U, 163U}) window.mark({ahead});
  window.open({1000}, 64);
  EXPECT_EQ(window.ahead(), 0U);
  for (std::uint32_t i = 0; i < 64; ++i) {
    EXPECT_EQ(window.judge({1000 + i}), ReceiveWindow::Verdict::fresh) << i;
    EXPECT_EQ(window.bitmap(0), 0U);
  }
}

// The owner frees its memory, or sends again, as soon as a message ends, while the ACK is still being processed.
TEST(LatentFault, TheOwnerFreesWhileTheAckIsTaken) {
  World world(8);
  open_session(world);
  Link& link = *world.ends[0].link;
  constexpr std::size_t kBytes = 6000;
  std::map<std::uint64_t, std::unique_ptr<std::byte[]>> memory;
  std::vector<iovec> pieces(2000);
  std::uint64_t next = 1'000'000, ended = 0;
  const auto submit = [&] {
    auto& bytes = memory[next] = std::make_unique<std::byte[]>(kBytes);
    pieces[next - 1'000'000] = {bytes.get(), kBytes};
    const Outgoing message{.envelope = {}, .pieces = {&pieces[next - 1'000'000], 1}, .size = kBytes, .cookie = next};
    ASSERT_EQ(link.submit(world.peer(0, 1), message, world.now), Status::ok);
    ++next;
  };
  for (int i = 0; i < 40; ++i) submit();
  Train train;
  for (int steps = 0; ended < 200 && steps < 100'000; ++steps) {
    while (const auto outcome = link.next_outcome()) {
      ASSERT_EQ(outcome->status, Status::ok);
      ASSERT_EQ(memory.erase(outcome->cookie), 1U) << "ended twice";  // any later read of it is a use after free
      ++ended;
      if (next < 1'000'200) submit();
    }
    // Some arrive twice and some not at all, so segments are sent again beside those that end.
    while (link.next_train(world.now, 65'000, 64, train)) {
      std::vector<std::byte> all;
      for (std::size_t i = 0; i < train.piece_count; ++i) {
        const auto* begin = static_cast<const std::byte*>(train.pieces[i].iov_base);
        all.insert(all.end(), begin, begin + train.pieces[i].iov_len);
      }
      for (std::size_t begin = 0; begin < all.size(); begin += train.datagram_size) {
        const std::size_t size = std::min<std::size_t>(train.datagram_size, all.size() - begin);
        if (world.random() % 10 == 0) continue;
        world.ends[1].link->receive(world.ends[0].address, std::span(all).subspan(begin, size), world.now,
                                    kPathDatagram);
        while (world.ends[1].link->next_delivery()) {
        }
      }
    }
    world.now += 20us;
    link.expire(world.now);
    world.ends[1].link->expire(world.now);
    while (world.ends[1].link->next_train(world.now, 65'000, 64, train)) {
      std::vector<std::byte> all;
      for (std::size_t i = 0; i < train.piece_count; ++i) {
        const auto* begin = static_cast<const std::byte*>(train.pieces[i].iov_base);
        all.insert(all.end(), begin, begin + train.pieces[i].iov_len);
      }
      link.receive(world.ends[1].address, all, world.now, kPathDatagram);
    }
  }
  EXPECT_EQ(ended, 200U);
  EXPECT_TRUE(memory.empty());
}

// A peer's data is read after the peer was freed: here its last segments, outcomes and notices.
TEST(LatentFault, APeerIsReadAfterItWasGivenBack) {
  World world(9);
  open_session(world);
  const std::uint64_t cookie = world.send(0, 1, 100'000);
  world.run_for(10us);
  Link& link = *world.ends[0].link;
  link.disconnect(world.peer(0, 1), world.now);
  EXPECT_EQ(link.peer_count(), 0U);
  Train train;
  std::uint32_t closes = 0;
  while (link.next_train(world.now, 65'000, 64, train)) {
    closes += train.to == world.ends[1].address;
    link.take_back(train, world.now);  // it does not go out either
    if (closes == 3) break;
  }
  EXPECT_EQ(closes, 3U);
  const auto outcome = link.next_outcome();
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->cookie, cookie);
  EXPECT_EQ(outcome->status, Status::canceled);
  EXPECT_FALSE(link.next_outcome().has_value());
}

// A reused room remembers how often its previous segment was sent.
TEST(LatentFault, ARoomRemembersItsGuestBefore) {
  Hotel hotel(1);
  Peer peer({}, 4);
  Segment* first = hotel.check_in_with_block(peer);
  ASSERT_NE(first, nullptr);
  first->transmissions = 7;
  first->records = 3;
  first->outcomes_wanted = 7;
  first->is_waiting = true;
  first->parts_sent = 2;
  first->piece_count = 5;
  hotel.check_out(*first);
  const Segment* second = hotel.check_in(peer);
  ASSERT_EQ(second, first);
  EXPECT_EQ(second->transmissions, 0U);
  EXPECT_EQ(second->records, 0U);
  EXPECT_EQ(second->outcomes_wanted, 0U);
  EXPECT_FALSE(second->is_waiting);
  EXPECT_EQ(second->parts_sent, 0U);
  EXPECT_EQ(second->piece_count, 0U);
  EXPECT_EQ(second->block, nullptr);
}

// Sequences are subtracted as plain numbers: where they wrap, all of a full window counts as old.
TEST(LatentFault, SequencesAreSubtractedAsPlainNumbers) {
  ReceiveWindow window;
  window.open({0xffff'fff0}, 64);
  for (std::uint32_t i = 1; i < 64; ++i) {
    ASSERT_EQ(window.judge(wire::Sequence{0xffff'fff0} + i), ReceiveWindow::Verdict::fresh) << i;
    window.mark(wire::Sequence{0xffff'fff0} + i);
  }
  EXPECT_EQ(window.judge(wire::Sequence{0xffff'fff0} + 64), ReceiveWindow::Verdict::too_new);
  window.mark({0xffff'fff0});
  EXPECT_EQ(window.next().value, 0xffff'fff0U + 64);
  EXPECT_EQ(window.judge({0xffff'ffff}), ReceiveWindow::Verdict::too_old);
}

// The length of a segment is computed without its head.
TEST(LatentFault, TheHeadIsNotCountedInASegmentsLength) {
  for (const std::uint32_t size : {1200U, 1201U, 1472U, 8972U, 65'000U}) {
    World world(10);
    world.path_datagram = size;
    std::size_t longest = 0;
    world.weather.drops = [&](std::size_t, std::span<const std::byte> bytes) {
      longest = std::max(longest, bytes.size());
      return false;
    };
    // Around each border: a whole message that just fits, and one that does not.
    for (std::uint32_t bytes = size - 200; bytes <= size + 8; bytes += 8) world.send(0, 1, bytes, 3);
    for (std::uint32_t i = 0; i < 60; ++i) world.send(0, 1, 700 + i);
    world.send(0, 1, 3 * size);
    world.run_until_ended();
    world.expect_all_delivered();
    EXPECT_LE(longest, size);
    EXPECT_GT(longest, size - 64);
  }
}

// The queue of completions is shorter than the number of possible completions, so some are lost.
TEST(LatentFault, TheQueueOfOutcomesIsTooShort) {
  LinkOptions options;
  options.messages_max = 100;
  World world(11, options);
  open_session(world);
  Link& link = *world.ends[0].link;
  std::array<std::byte, 8> bytes{};
  const iovec piece{bytes.data(), bytes.size()};
  std::uint64_t taken = 0;
  for (std::uint64_t i = 0; i < 300; ++i) {
    const Outgoing message{.envelope = {}, .pieces = {&piece, 1}, .size = bytes.size(), .cookie = i};
    if (link.submit(world.peer(0, 1), message, world.now) == Status::ok) ++taken;
  }
  EXPECT_EQ(taken, 100U);
  link.disconnect(world.peer(0, 1), world.now);
  std::uint64_t outcomes = 0;
  while (link.next_outcome()) ++outcomes;
  EXPECT_EQ(outcomes, taken);
  EXPECT_EQ(link.counters().submits_refused, 200U);
}

// Space on one channel is taken for space on the other.
TEST(LatentFault, TheRoomOfTheWrongChannelIsAsked) {
  LinkOptions options;
  options.command_depth = 16;
  options.data_depth = 4;
  World world(12, options);
  std::uint64_t cookie = 1'000'000;
  const auto fill = [&](std::size_t size) {
    std::uint32_t taken = 0;
    while (world.try_send(0, 1, size, cookie++) == Status::ok) ++taken;
    return taken;
  };
  EXPECT_EQ(fill(8), 16U);
  EXPECT_EQ(fill(10'000), 4U);
  world.run_until_ended();
  EXPECT_EQ(fill(10'000), 4U);  // and in the other order
  EXPECT_EQ(fill(8), 16U);
  world.run_until_ended();
  world.expect_all_delivered();
}

// Reassembly silently falls back to a slower way. Here: slots are those that the peer was granted, and they are reused.
TEST(LatentFault, ReassemblyGoesPastItsPool) {
  LinkOptions options;
  options.reassembly_slots = 2;
  World world(13, options);
  open_session(world);
  std::uint32_t slots_seen = 0;
  world.weather.drops = [&](std::size_t from, std::span<const std::byte> bytes) {
    if (from == 0 && header_of(bytes).kind == wire::Kind::data) {
      const auto frame = wire::decode(bytes);
      const wire::Record record = wire::RecordReader(frame->payload).next();
      if (record.kind == wire::RecordKind::chunk) slots_seen |= 1U << record.chunk.slot;
    }
    return false;
  };
  for (int i = 0; i < 20; ++i) world.send(0, 1, 20'000);
  world.run_until_ended();
  world.expect_all_delivered();
  EXPECT_EQ(slots_seen, 3U);
  EXPECT_EQ(refusals_of(world, 1, Refusal::no_slot), 0U);
}

}  // namespace
}  // namespace fairlead::link::testing
