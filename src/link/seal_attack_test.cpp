// An attacker on the path of a sealed session can only delay and drop.

#include <gtest/gtest.h>

#include "link/sealed_world_for_tests.hpp"
#include "wire/hello.hpp"

namespace fairlead::link {
namespace {

using namespace testing;

std::vector<std::byte> reset_of(std::uint64_t token) {
  wire::Header header;
  header.kind = wire::Kind::reset;
  header.token = token;
  std::vector<std::byte> reset(wire::kSegmentHeaderBytes);
  wire::encode(header, reset.data());
  wire::add_checksum(reset, {});
  return reset;
}

TEST(LinkSealAttack, NoBitOfASegmentMayBeChanged) {
  World world(13, {}, 2, all_with_psk(13));
  open_session(world);
  std::vector<std::byte> kept;
  world.weather.drops = [&](std::size_t from, std::span<const std::byte> bytes) {
    if (from != 0 || header_of(bytes).kind != wire::Kind::data || !kept.empty()) return false;
    kept.assign(bytes.begin(), bytes.end());
    return true;
  };
  world.send(0, 1, 20);
  world.drain(0);
  ASSERT_FALSE(kept.empty());
  const std::uint64_t replayed = refused(world, 1, Refusal::replayed), bad = refused(world, 1, Refusal::bad_tag);
  const std::uint64_t delivered = counted(world, 1).messages_delivered;
  for (std::size_t bit = 0; bit < 8 * kept.size(); ++bit) {
    std::vector<std::byte> changed = kept;
    changed[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    world.ends[1].link->receive(world.ends[0].address, changed, world.now, kPathDatagram);
    ASSERT_FALSE(world.ends[1].link->next_delivery()) << "bit " << bit;
  }
  EXPECT_EQ(counted(world, 1).messages_delivered, delivered);
  EXPECT_GT(refused(world, 1, Refusal::bad_tag), bad + 8 * (kept.size() - wire::kSegmentHeaderBytes) - 1);
  const std::uint64_t again = refused(world, 1, Refusal::replayed);  // numbers of segments before it
  EXPECT_LE(again, replayed + 32);
  world.ends[1].link->receive(world.ends[0].address, kept, world.now, kPathDatagram);
  EXPECT_TRUE(world.ends[1].link->next_delivery());
  world.ends[1].link->receive(world.ends[0].address, kept, world.now, kPathDatagram);
  EXPECT_FALSE(world.ends[1].link->next_delivery());
  EXPECT_EQ(refused(world, 1, Refusal::replayed), again + 1);
}

TEST(LinkSealAttack, AForgedResetMakesUsAskAndLosesNothing) {
  World world(14, {}, 2, all_with_psk(14));
  open_session(world);
  std::uint64_t token = 0;
  world.weather.drops = [&](std::size_t from, std::span<const std::byte> bytes) {
    if (from == 0 && header_of(bytes).kind == wire::Kind::data) token = header_of(bytes).token;
    return false;
  };
  for (int i = 0; i < 20; ++i) {
    world.send(0, 1, 100'000);
    world.send(1, 0, 500);
    world.run_for(200us);
    world.inject(1, 0, reset_of(token));
  }
  world.run_until_ended();
  world.expect_all_delivered();
  EXPECT_GT(counted(world, 0).resets_doubted, 0U);
  EXPECT_EQ(counted(world, 0).sessions_opened, 1U);
  EXPECT_EQ(counted(world, 1).sessions_opened, 1U);
  world.run_for(10s);
  EXPECT_EQ(world.ends[0].link->next_deadline(), base::kNever);
}

TEST(LinkSealAttack, AForgedResetOfANewSessionEndsNothingEither) {
  World world(14, {}, 2, all_with_psk(14));
  int dropped = 0;
  world.weather.drops = [&](std::size_t from, std::span<const std::byte> bytes) {
    if (from != 0 || header_of(bytes).kind != wire::Kind::data || dropped > 0) return false;
    ++dropped;  // the first segment, which would have shown the responder that its answer arrived
    world.inject(1, 0, reset_of(header_of(bytes).token));
    return true;
  };
  world.send(0, 1, 500);
  world.run_until_ended();
  world.expect_all_delivered();
  EXPECT_EQ(dropped, 1);
  EXPECT_EQ(counted(world, 0).resets_doubted, 1U);
  EXPECT_EQ(counted(world, 0).sessions_opened, 1U);
  EXPECT_EQ(counted(world, 1).sessions_opened, 1U);
}

TEST(LinkSealAttack, AForgedResetOfAQuietSessionEndsNothingEither) {
  World world(15, {}, 2, all_with_psk(15));
  std::uint64_t token = 0;
  world.weather.drops = [&](std::size_t from, std::span<const std::byte> bytes) {
    if (from == 0 && header_of(bytes).kind == wire::Kind::data) token = header_of(bytes).token;
    return false;
  };
  open_session(world);
  world.inject(1, 0, reset_of(token));
  world.run_for(1s);
  EXPECT_EQ(counted(world, 0).resets_doubted, 1U);
  EXPECT_EQ(counted(world, 0).sessions_lost, 0U);
  EXPECT_EQ(counted(world, 1).sessions_lost, 0U);
  world.send(0, 1, 10);
  world.run_until_ended();
  world.expect_all_delivered();
}

TEST(LinkSealAttack, ARefusalInTheClearEndsNoGreetingThatIsAnswered) {
  World world(16, {}, 2, all_with_psk(16));
  world.weather.drops = [&](std::size_t from, std::span<const std::byte> bytes) {
    const auto frame = wire::decode(bytes);
    if (from != 0 || !frame || frame->header.kind != wire::Kind::hello) return false;
    const wire::ReturnAddress to = wire::read_return_address(frame->payload, true);
    wire::Header header;
    header.kind = wire::Kind::hello_refused;
    header.slot = to.slot;
    header.token = to.token;
    std::vector<std::byte> refusal(wire::kSegmentHeaderBytes + wire::kRefusedBytes);
    wire::encode(header, refusal.data());
    wire::encode_refused(static_cast<std::uint64_t>(seal::Refused::wrong_secret),
                         refusal.data() + wire::kSegmentHeaderBytes);
    wire::add_checksum(refusal, {});
    world.inject(1, 0, refusal);
    return false;
  };
  world.send(0, 1, 100);
  world.run_until_ended();
  world.expect_all_delivered();
  EXPECT_GT(counted(world, 0).hello_refusals_received, 0U);
}

TEST(LinkSealAttack, ASealedGreetingIsNotAnsweredInTheClear) {
  World world(22, {}, 2, all_with_static_keys(22));
  int forged = 0;
  world.weather.drops = [&](std::size_t from, std::span<const std::byte> bytes) {
    const auto frame = wire::decode(bytes);
    if (from != 0 || !frame || frame->header.kind != wire::Kind::hello) return false;
    const wire::ReturnAddress to = wire::read_return_address(frame->payload, true);
    wire::Header header;
    header.kind = wire::Kind::hello_ack;
    header.slot = to.slot;
    header.token = to.token;
    const wire::Hello hello{.epoch = 7,
                            .token = 8,
                            .window_bytes = 1U << 20,
                            .initial_sequence = {},
                            .datagram_size_max = 1472,
                            .window_segments = 64,
                            .reassembly_slots = 4,
                            .ack_after = {}};
    std::vector<std::byte> answer(wire::kSegmentHeaderBytes + wire::kHelloBytes);
    wire::encode(header, answer.data());
    wire::encode(hello, answer.data() + wire::kSegmentHeaderBytes);
    wire::add_checksum(answer, {});
    world.inject(1, 0, answer);
    ++forged;
    return true;
  };
  const std::uint64_t cookie = world.send(0, 1, 100);
  world.run_until_ended();
  EXPECT_EQ(world.ends[0].sent[cookie].status, Status::unreachable);
  EXPECT_EQ(counted(world, 0).sessions_opened, 0U);
  EXPECT_GT(forged, 2);
  EXPECT_EQ(refused(world, 0, Refusal::not_sealed), static_cast<std::uint64_t>(forged));
}

// A greeting of the peer's next life is answered, but its proof is changed on the way.
TEST(LinkSealAttack, OnlyWhoHasTheKeysReplacesASession) {
  World world(23, {}, 2, all_with_psk(23));
  open_session(world);
  world.restart(1);
  world.weather.drops = [&](std::size_t from, std::span<const std::byte> bytes) {
    const wire::Kind kind = header_of(bytes).kind;
    if (from != 1 || (kind != wire::Kind::data && kind != wire::Kind::ack && kind != wire::Kind::probe)) return false;
    std::vector<std::byte> changed(bytes.begin(), bytes.end());
    changed.back() ^= std::byte{1};
    world.inject(1, 0, changed);
    return true;
  };
  world.send(1, 0, 100);
  world.run_for(10ms);
  EXPECT_EQ(counted(world, 1).sessions_opened, 1U);
  EXPECT_GT(refused(world, 0, Refusal::bad_tag), 2U);
  EXPECT_EQ(counted(world, 0).sessions_opened, 1U);
  EXPECT_EQ(counted(world, 0).sessions_lost, 0U);
}

// The first message of a change that its sender has given up comes when the next one has been answered.
TEST(LinkSealAttack, AChangeOfKeysThatIsHeldBackUndoesNothing) {
  World world(24, {}, 2, [inner = all_with_psk(24)](std::size_t end) {
    auto settings = inner(end);
    settings->bytes_max = 100'000;
    return settings;
  });
  open_session(world);
  std::vector<std::byte> held;
  bool is_set_free = false;
  world.weather.drops = [&](std::size_t from, std::span<const std::byte> bytes) {
    const wire::Kind kind = header_of(bytes).kind;
    if (kind == wire::Kind::rekey_answer && !is_set_free) {
      world.inject(0, 1, held);
      is_set_free = true;
    }
    if (from != 0 || kind != wire::Kind::rekey || counted(world, 0).rekeys_sent > 16) return false;
    held.assign(bytes.begin(), bytes.end());
    return true;
  };
  for (int i = 0; i < 60; ++i) {
    world.send(0, 1, 10'000);
    world.run_for(100ms);
  }
  world.run_until_ended();
  world.expect_all_delivered();
  EXPECT_TRUE(is_set_free);
  EXPECT_EQ(refused(world, 1, Refusal::bad_handshake), 1U);
  EXPECT_GE(counted(world, 0).keys_changed, 1U);
  EXPECT_EQ(counted(world, 0).sessions_lost, 0U);
}

TEST(LinkSealAttack, WhatIsInTheClearIsNotOfASealedSession) {
  World world(17, {}, 2, all_with_psk(17));
  wire::Header seen;
  world.weather.drops = [&](std::size_t from, std::span<const std::byte> bytes) {
    if (from == 0 && header_of(bytes).kind == wire::Kind::data) seen = header_of(bytes);
    return false;
  };
  open_session(world);
  for (const wire::Kind kind : {wire::Kind::ack, wire::Kind::close, wire::Kind::probe, wire::Kind::probe_answer}) {
    wire::Header header = seen;
    header.flags = 0;
    header.kind = kind;
    std::vector<std::byte> bytes(wire::kSegmentHeaderBytes);
    wire::encode(header, bytes.data());
    wire::add_checksum(bytes, {});
    world.inject(0, 1, bytes);
  }
  world.run_for(1ms);
  EXPECT_EQ(refused(world, 1, Refusal::not_sealed), 4U);
  EXPECT_EQ(counted(world, 1).sessions_lost, 0U);
}

TEST(LinkSealAttack, OnThePathOneCanDelayAndDropAndNothingElse) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    World world(seed, {}, 2,
                [inner = seed % 2 == 0 ? all_with_psk(seed) : all_with_static_keys(seed)](std::size_t end) {
                  auto settings = inner(end);
                  settings->bytes_max = 300'000;
                  return settings;
                });
    // The attacker keeps all that passes. It repeats it, changed or not, from either side, at any time, and adds
    // forgeries.
    std::vector<std::vector<std::byte>> seen;
    int mischief = 0;
    world.weather.jitter = 100us;
    world.weather.drops = [&](std::size_t, std::span<const std::byte> bytes) {
      if (seen.size() < 4000) seen.emplace_back(bytes.begin(), bytes.end());
      for (int i = 0; i < 2 && ++mischief < 20'000; ++i) {
        std::vector<std::byte> forged = seen[world.random() % seen.size()];
        const std::uint64_t way = world.random() % 6;
        if (way == 0) forged[world.random() % forged.size()] ^= static_cast<std::byte>(1U << (world.random() % 8));
        if (way == 1) forged.resize(std::max<std::size_t>(1, world.random() % forged.size()));
        if (way == 2 && forged.size() >= wire::kSegmentHeaderBytes) {  // in the clear, with a right checksum
          forged[1] = static_cast<std::byte>(1 + world.random() % 13);
          forged[2] &= std::byte{31};
          if (world.random() % 2 == 0) forged.resize(wire::kSegmentHeaderBytes);
          wire::add_checksum(forged, {});
        }
        const std::size_t to = world.random() % 2;
        world.inject(1 - to, to, std::move(forged), Duration(world.random() % 3'000'000));
      }
      return world.random() % 20 == 0;
    };
    for (int i = 0; i < 25; ++i) {
      world.send(0, 1, world.random() % 60'000);
      world.send(1, 0, world.random() % 2'000);
      world.run_for(100us);
    }
    world.run_until_ended();
    world.expect_all_delivered();
    EXPECT_EQ(counted(world, 0).sessions_opened, 1U) << seed;
    EXPECT_EQ(counted(world, 1).sessions_opened, 1U) << seed;
  }
}

TEST(LinkSealAttack, UnprovenGreetingsCostNoAgreement) {
  World world(18, {}, 2, all_with_static_keys(18));
  // Hellos without a cookie from many addresses: each gets a cookie, and no state and no handshake is spent on it.
  for (std::uint16_t i = 0; i < 200; ++i) {
    std::vector<std::byte> hello(wire::kSegmentHeaderBytes + 190, static_cast<std::byte>(i));
    wire::Header header;
    header.kind = wire::Kind::hello;
    header.flags = wire::Flags::kSealed;
    wire::encode(header, hello.data());
    wire::add_checksum(hello, {});
    base::SocketAddress from = world.ends[0].address;
    from.port = static_cast<std::uint16_t>(1000 + i);
    world.ends[1].link->receive(from, hello, world.now, kPathDatagram);
  }
  EXPECT_EQ(counted(world, 1).hellos_received, 200U);
  EXPECT_EQ(refused(world, 1, Refusal::wrong_key) + refused(world, 1, Refusal::other_kind), 0U);
  EXPECT_EQ(world.ends[1].link->peer_count(), 0U);
}

TEST(LinkSealAttack, GreetingsWithCookiesAreAnsweredWithinABudget) {
  World world(19, {.handshakes_per_second = 64, .handshakes_each_per_second = 1}, 2, all_with_psk(19));
  // One host that receives its cookies sends ever new nonsense.
  Train train;
  for (std::uint64_t i = 0; i < 300; ++i) {
    std::vector<std::byte> hello(wire::kSegmentHeaderBytes + 150, std::byte{1});
    wire::Header header;
    header.kind = wire::Kind::hello;
    header.flags = wire::Flags::kSealed;
    wire::store(hello.data(), wire::kSegmentHeaderBytes + 40, i);
    wire::encode(header, hello.data());
    wire::add_checksum(hello, {});
    base::SocketAddress from = world.ends[0].address;
    from.ip[13] = static_cast<std::uint8_t>(1 + i % 200);
    world.ends[1].link->receive(from, hello, world.now, kPathDatagram);
    while (world.ends[1].link->next_train(world.now, 65'000, 64, train)) {
      const std::span bytes(static_cast<const std::byte*>(train.pieces[0].iov_base), train.pieces[0].iov_len);
      const auto frame = wire::decode(bytes);
      if (!frame || frame->header.kind != wire::Kind::hello_retry) continue;
      header.token = wire::read_retry(frame->payload);
      wire::encode(header, hello.data());
      wire::add_checksum(hello, {});
      world.ends[1].link->receive(from, hello, world.now, kPathDatagram);
    }
  }
  EXPECT_GT(refused(world, 1, Refusal::wrong_secret), 0U);
  EXPECT_GT(refused(world, 1, Refusal::too_many_handshakes), 100U);
  world.expect_consistent();
}

/// What its cookie lets be looked at, and no more.
std::vector<std::byte> nonsense_hello(std::uint64_t number, std::uint64_t cookie) {
  std::vector<std::byte> hello(wire::kSegmentHeaderBytes + 150, std::byte{1});
  wire::Header header;
  header.kind = wire::Kind::hello;
  header.flags = wire::Flags::kSealed;
  header.token = cookie;
  wire::encode(header, hello.data());
  wire::encode(wire::ReturnAddress{.slot = 0, .token = number}, hello.data() + wire::kSegmentHeaderBytes);
  wire::add_checksum(hello, {});
  return hello;
}

// An attacker that greets in a peer's name and sees the cookies uses up the handshake budget of that host.
TEST(LinkSealAttack, GreetingsInOurNameDoNotHoldUpNewKeys) {
  World world(25, {.handshakes_per_second = 16, .handshakes_each_per_second = 16}, 2,
              [inner = all_with_psk(25)](std::size_t end) {
                auto settings = inner(end);
                settings->bytes_max = 20'000;
                return settings;
              });
  open_session(world);
  world.weather.drops = [&](std::size_t from, std::span<const std::byte> bytes) {
    const auto frame = wire::decode(bytes);
    if (from != 1 || frame->header.kind != wire::Kind::hello_retry) return false;
    world.inject(0, 1, nonsense_hello(frame->header.token, wire::read_retry(frame->payload)));
    return true;
  };
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    world.send(0, 1, 5'000);
    world.inject(0, 1, nonsense_hello(i, 0));
    world.run_for(2ms);
  }
  world.run_until_ended();
  world.expect_all_delivered();
  EXPECT_GT(refused(world, 1, Refusal::too_many_handshakes), 200U);
  EXPECT_GE(counted(world, 0).keys_changed, 20U);
  EXPECT_EQ(counted(world, 0).sessions_lost, 0U);
}

}  // namespace
}  // namespace fairlead::link
