// Sealed sessions: which keys fit, why a hello is refused, and that an attacker on the path can only delay and drop.

#include <gtest/gtest.h>

#include <map>

#include "link/sealing_for_tests.hpp"
#include "wire/hello.hpp"

namespace fairlead::link {
namespace {

using namespace testing;

const LinkCounters& counted(const World& world, std::size_t end) {
  return world.ends[end].link->counters();
}
std::uint64_t refused(const World& world, std::size_t end, Refusal refusal) {
  return counted(world, end).refused[static_cast<std::size_t>(refusal)];
}
PeerFacts facts_of(World& world, std::size_t end) {
  return world.ends[end].link->facts(world.peer(end, 1 - end));
}
const Notice* lost_notice(const World& world, std::size_t end) {
  const auto& notices = world.ends[end].notices;
  const auto found = std::ranges::find(notices, Notice::Kind::lost, &Notice::kind);
  return found == notices.end() ? nullptr : &*found;
}

/// A world of two ends with rings of their own.
World world_of(std::uint64_t seed, std::shared_ptr<const seal::Keyring> one, std::shared_ptr<const seal::Keyring> two) {
  return World(seed, {}, 2, [=](std::size_t end) { return sealing_with(end == 0 ? one : two, seed + end); });
}

class LinkSeal : public ::testing::TestWithParam<bool> {
 protected:
  static World::Sealing sealing(std::uint64_t seed) {
    return GetParam() ? all_with_static_keys(seed) : all_with_psk(seed);
  }
};

TEST_P(LinkSeal, MessagesOfAllLengthsArrive) {
  World world(1, {}, 2, sealing(1));
  for (const std::size_t size : {0U, 1U, 8U, 100U, 768U, 1'400U, 5'000U, 300'000U}) {
    world.send(0, 1, size, size > 1000 ? 7 : 1);
    world.send(1, 0, size);
  }
  world.run_until_ended();
  world.expect_all_delivered();
  EXPECT_EQ(counted(world, 0).sessions_sealed, 1U);
  EXPECT_EQ(counted(world, 1).sessions_sealed, 1U);
  EXPECT_TRUE(facts_of(world, 0).is_sealed && facts_of(world, 1).is_sealed);
}

TEST_P(LinkSeal, NothingOfAMessageIsInTheClear) {
  World world(2, {}, 2, sealing(2));
  std::size_t datagrams = 0;
  world.weather.drops = [&](std::size_t, std::span<const std::byte> bytes) {
    const auto frame = wire::decode(bytes);
    EXPECT_TRUE(frame);
    const wire::Kind kind = frame->header.kind;
    if (kind == wire::Kind::hello_retry) return false;
    EXPECT_TRUE(frame->is_sealed()) << static_cast<int>(kind);
    // World's pattern is known: no eight bytes of it may be anywhere.
    for (std::uint64_t cookie = 1; cookie < 5; ++cookie) {
      std::array<std::byte, 8> text;
      for (std::size_t i = 0; i < text.size(); ++i) text[i] = World::pattern(cookie, i);
      EXPECT_TRUE(std::ranges::search(bytes, text).empty());
    }
    ++datagrams;
    return false;
  };
  for (const std::size_t size : {8U, 600U, 20'000U}) world.send(0, 1, size);
  world.run_until_ended();
  world.expect_all_delivered();
  EXPECT_GT(datagrams, 15U);
}

TEST_P(LinkSeal, InWeatherOfAllKindsNothingIsLostOrDamaged) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    World world(seed, {}, 2, sealing(seed));
    world.weather.loss = world.weather.repeat = 0.05;
    world.weather.damage = 0.02;
    world.weather.jitter = 300us;
    for (int i = 0; i < 40; ++i) {
      world.send(0, 1, world.random() % 900);
      world.send(1, 0, world.random() % 40'000, 1 + world.random() % 9);
    }
    world.run_until_ended();
    world.expect_all_delivered();
    EXPECT_GT(refused(world, 0, Refusal::bad_tag) + refused(world, 1, Refusal::bad_tag), 0U) << seed;
    EXPECT_GT(refused(world, 0, Refusal::replayed) + refused(world, 1, Refusal::replayed), 0U) << seed;
  }
}

TEST_P(LinkSeal, ReorderingByTheWholeWindowLosesNothing) {
  for (const Duration jitter : {Duration(200us), Duration(20ms)}) {
    World world(3, {.window_segments = 4096, .window_bytes = 64U << 20}, 2, sealing(3));
    world.weather.spacing = 1us;
    world.weather.jitter = jitter;  // up to 200 and up to 20,000 positions
    for (int i = 0; i < 30; ++i) world.send(0, 1, 200'000);
    world.run_until_ended();
    world.expect_all_delivered();
    EXPECT_EQ(refused(world, 1, Refusal::bad_tag), 0U);
  }
}

TEST_P(LinkSeal, GreetingsThatCrossMakeOneSession) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    World world(seed, {}, 2, sealing(seed));
    world.weather.jitter = Duration(seed % 7) * 40'000 + 1ns;
    if (seed % 3 == 2) world.weather.loss = 0.3;
    for (int i = 0; i < 5; ++i) {
      world.send(0, 1, 100);
      world.send(1, 0, 100);
    }
    world.run_until_ended();
    world.expect_all_delivered();
    EXPECT_EQ(counted(world, 0).sessions_opened, 1U) << seed;
    EXPECT_EQ(counted(world, 1).sessions_opened, 1U) << seed;
  }
}

// The second greets at any step of the first one's greeting, and datagrams overtake each other.
TEST_P(LinkSeal, GreetingsThatCrossAtAnyStepMakeOneSession) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    World world(seed, {}, 2, sealing(seed));
    world.weather.jitter = 150us;
    world.send(0, 1, 100);
    world.run_for(Duration(static_cast<std::int64_t>(seed) * 3'000));
    world.send(1, 0, 100);
    world.run_until_ended();
    world.expect_all_delivered();
    EXPECT_EQ(counted(world, 0).sessions_opened, 1U) << seed;
    EXPECT_EQ(counted(world, 1).sessions_opened, 1U) << seed;
  }
}

// Each end has answered the other's hello when the answers arrive.
TEST_P(LinkSeal, GreetingsThatAreBothAnsweredMakeOneSession) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    World world(seed, {}, 2, sealing(seed));
    bool is_late = false;
    world.weather.drops = [&](std::size_t from, std::span<const std::byte> bytes) {
      if (is_late || header_of(bytes).kind != wire::Kind::hello_ack) return false;
      world.inject(from, 1 - from, {bytes.begin(), bytes.end()}, Duration(20us) + seed * 5us);
      return is_late = true;
    };
    world.send(1, 0, 100);
    world.run_for(70us);
    ASSERT_TRUE(is_late);
    world.send(0, 1, 100);
    world.run_until_ended();
    world.expect_all_delivered();
    EXPECT_EQ(counted(world, 0).sessions_opened, 1U) << seed;
    EXPECT_EQ(counted(world, 1).sessions_opened, 1U) << seed;
  }
}

TEST_P(LinkSeal, ARestartedPeerIsMetAnewAfterItsNewLifeIsProven) {
  World world(5, {}, 2, sealing(5));
  open_session(world);
  world.restart(1);
  const std::uint64_t lost = world.send(0, 1, 100);
  world.run_until_ended();
  EXPECT_EQ(world.ends[0].sent[lost].status, Status::restarted);
  EXPECT_EQ(counted(world, 0).resets_doubted, 1U);
  world.send(0, 1, 100);
  world.run_until_ended();
  EXPECT_EQ(counted(world, 1).messages_delivered, 1U);
  EXPECT_TRUE(facts_of(world, 0).is_sealed);
}

TEST_P(LinkSeal, ARestartedPeerThatSpeaksFirstIsMetAnew) {
  World world(6, {}, 2, sealing(6));
  open_session(world);
  world.restart(1);
  const std::uint64_t cookie = world.send(1, 0, 100);
  world.run_until_ended();
  EXPECT_EQ(world.ends[1].sent[cookie].status, Status::ok);
  EXPECT_EQ(counted(world, 0).sessions_opened, 2U);
  ASSERT_NE(lost_notice(world, 0), nullptr);
  EXPECT_EQ(lost_notice(world, 0)->status, Status::restarted);
}

TEST_P(LinkSeal, ACloseOfASealedSessionIsBelieved) {
  World world(7, {}, 2, sealing(7));
  open_session(world);
  world.ends[0].link->disconnect_all(world.now);
  world.run_for(5ms);
  ASSERT_NE(lost_notice(world, 1), nullptr);
  EXPECT_EQ(lost_notice(world, 1)->status, Status::refused);
  EXPECT_EQ(counted(world, 1).closes_received, 1U);
}

TEST_P(LinkSeal, TheKeysChangeUnderLoadAndLossWithoutLosingAMessage) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    World world(seed, {}, 2, [inner = sealing(seed)](std::size_t end) {
      auto settings = inner(end);
      settings->bytes_max = 400'000;
      return settings;
    });
    world.weather.loss = 0.1;
    world.weather.repeat = 0.02;
    world.weather.jitter = 200us;
    for (int i = 0; i < 60; ++i) {
      world.send(0, 1, 100'000);
      if (i % 2 == 0) world.send(1, 0, 50'000);
    }
    world.run_until_ended();
    world.expect_all_delivered();
    EXPECT_GE(counted(world, 0).keys_changed, 5U) << seed;
    EXPECT_GE(counted(world, 1).keys_changed + 1, counted(world, 0).keys_changed) << seed;
    EXPECT_EQ(counted(world, 0).sessions_opened, 1U) << seed;
    EXPECT_EQ(refused(world, 0, Refusal::unknown_epoch) + refused(world, 1, Refusal::unknown_epoch), 0U) << seed;
  }
}

TEST_P(LinkSeal, OldKeysAreChangedByTheNextMessageAndNoTimerStays) {
  World world(9, {}, 2, sealing(9));
  open_session(world);
  world.run_for(std::chrono::hours(3));
  EXPECT_EQ(facts_of(world, 0).key_epoch, 0U);
  EXPECT_EQ(world.ends[0].link->next_deadline(), base::kNever);
  world.send(1, 0, 10);
  world.run_until_ended();
  world.run_for(100ms);
  EXPECT_EQ(facts_of(world, 0).key_epoch, 1U);
  EXPECT_EQ(facts_of(world, 1).key_epoch, 1U);
  world.run_for(10s);
  EXPECT_EQ(world.ends[0].link->next_deadline(), base::kNever);
  EXPECT_EQ(world.ends[1].link->next_deadline(), base::kNever);
  world.expect_all_delivered();
}

TEST_P(LinkSeal, AKeyThatNobodyChangesEndsTheSession) {
  World world(10, {}, 2, [inner = sealing(10)](std::size_t end) {
    auto settings = inner(end);
    settings->bytes_max = 100'000;
    return settings;
  });
  open_session(world);
  world.weather.drops = [](std::size_t, std::span<const std::byte> bytes) {
    return header_of(bytes).kind == wire::Kind::rekey;
  };
  for (int second = 0; second < 40 && lost_notice(world, 0) == nullptr; ++second) {
    for (int i = 0; i < 4; ++i) world.send(0, 1, 50'000);
    world.run_for(1s);
  }
  ASSERT_NE(lost_notice(world, 0), nullptr);
  EXPECT_EQ(lost_notice(world, 0)->diagnosis, Diagnosis::keys_not_changed);
  EXPECT_EQ(lost_notice(world, 0)->status, Status::refused);
  ASSERT_NE(lost_notice(world, 1), nullptr) << "it is told";
  EXPECT_EQ(lost_notice(world, 1)->status, Status::refused);
}

// A window beyond the bound is in flight when the change begins.
TEST_P(LinkSeal, KeysMayDoMoreThanTheyShouldUntilTheyAreChanged) {
  World world(20, {}, 2, [inner = sealing(20)](std::size_t end) {
    auto settings = inner(end);
    settings->bytes_max = 10'000;
    return settings;
  });
  for (int i = 0; i < 40; ++i) world.send(0, 1, 100'000);
  world.run_until_ended();
  world.expect_all_delivered();
  EXPECT_GE(counted(world, 0).keys_changed, 2U);
  EXPECT_EQ(counted(world, 0).sessions_lost, 0U);
}

// Only the session's responder wants new keys.
TEST_P(LinkSeal, TheResponderAsksForNewKeys) {
  World world(21, {}, 2, [inner = sealing(21)](std::size_t end) {
    auto settings = inner(end);
    if (end == 1) settings->bytes_max = 100'000;
    return settings;
  });
  open_session(world);
  world.weather.loss = 0.1;
  for (int i = 0; i < 40; ++i) {
    world.send(0, 1, 50'000);
    world.run_for(5ms);
  }
  world.run_until_ended();
  world.expect_all_delivered();
  EXPECT_GE(counted(world, 0).keys_changed, 2U);
  EXPECT_EQ(counted(world, 0).sessions_lost, 0U);
  world.run_for(10s);
  EXPECT_EQ(world.ends[0].link->next_deadline(), base::kNever);
  EXPECT_EQ(world.ends[1].link->next_deadline(), base::kNever);
}

/// Records which epochs each sender and session sealed under, in their order.
class Numbers {
 public:
  void look(std::size_t from, std::span<const std::byte> datagram) {
    const auto frame = wire::decode(datagram);
    ASSERT_TRUE(frame);
    const wire::Kind kind = frame->header.kind;
    if (!frame->is_sealed() || kind == wire::Kind::hello || kind == wire::Kind::hello_ack) return;
    Epochs& epochs = epochs_[{from, frame->header.token}];
    const std::uint8_t bits = wire::epoch_of(frame->header);
    if (bits != epochs.bits) epochs.used.clear();
    epochs.bits = bits;
    const std::uint32_t number = wire::number_of(datagram.first(wire::kSegmentHeaderBytes));
    const auto [place, is_new] = epochs.used.try_emplace(number, datagram.begin(), datagram.end());
    EXPECT_TRUE(is_new || std::ranges::equal(place->second, datagram)) << "number " << number << " twice";
    ++count;
  }

  std::size_t count = 0;

 private:
  struct Epochs {
    std::uint8_t bits = 0;
    std::map<std::uint32_t, std::vector<std::byte>> used;
  };
  std::map<std::pair<std::size_t, std::uint64_t>, Epochs> epochs_;
};

// Segments sent, resent, returned by the path and sent in parts, through changes of keys and to the close.
TEST_P(LinkSeal, NoNumberIsUsedForTwoSegments) {
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    World world(seed, {}, 2, [inner = sealing(seed)](std::size_t end) {
      auto settings = inner(end);
      settings->bytes_max = 300'000;
      return settings;
    });
    Numbers numbers;
    world.weather.loss = 0.1;
    world.weather.drops = [&](std::size_t from, std::span<const std::byte> bytes) {
      numbers.look(from, bytes);
      return bytes.size() > 1300 && world.now > Instant(std::chrono::seconds(1)) + 5ms;  // the path becomes narrower
    };
    world.weather.refuses = [&](std::size_t from, const Train& train) {
      if (world.random() % 10 != 0) return false;
      for (std::size_t begin = 0; begin < train.bytes; begin += train.datagram_size) {
        const auto* const bytes = static_cast<const std::byte*>(train.pieces[0].iov_base) + begin;
        if (train.piece_count == 1)
          numbers.look(from, {bytes, std::min(train.datagram_size, train.bytes - static_cast<std::uint32_t>(begin))});
      }
      return true;
    };
    for (int i = 0; i < 30; ++i) {
      world.send(0, 1, 40'000);
      world.send(1, 0, 300);
      world.run_for(1ms);
    }
    world.run_until_ended();
    world.expect_all_delivered();
    world.run_for(100ms);
    for (auto& end : world.ends) end.link->disconnect_all(world.now);
    world.run_for(10ms);
    EXPECT_GE(counted(world, 0).keys_changed, 1U);
    EXPECT_GT(counted(world, 0).parts_sent, 0U);
    EXPECT_GT(counted(world, 0).trains_returned, 0U);
    EXPECT_GT(numbers.count, 1000U);
  }
}

INSTANTIATE_TEST_SUITE_P(BothKinds, LinkSeal, ::testing::Bool(),
                         [](const auto& kind) { return kind.param ? "StaticKeys" : "SharedSecret"; });

// Which hellos are refused, and what each side reports ----------------------------------------------------------------

struct Refusing {
  std::shared_ptr<const seal::Keyring> initiators, responders;
  seal::Refused told = seal::Refused::none;  // to the initiator
  Refusal counted = Refusal::not_sealed;     // by the responder
};

void expect_refused(std::uint64_t seed, const Refusing& refusing) {
  World world = world_of(seed, refusing.initiators, refusing.responders);
  const std::uint64_t cookie = world.send(0, 1, 100);
  world.run_until_ended();
  EXPECT_EQ(world.ends[0].sent[cookie].status, Status::refused);
  ASSERT_NE(lost_notice(world, 0), nullptr);
  EXPECT_EQ(lost_notice(world, 0)->diagnosis, Diagnosis::refused_there);
  EXPECT_EQ(lost_notice(world, 0)->refused, refusing.told);
  EXPECT_GT(refused(world, 1, refusing.counted), 0U);
  EXPECT_EQ(world.ends[1].link->turned_away().why, refusing.told);
  EXPECT_EQ(world.ends[1].link->turned_away().from, world.ends[0].address);
  EXPECT_EQ(counted(world, 1).sessions_opened, 0U);
  world.expect_consistent();
}

TEST(LinkSealRefusals, AnotherSecret) {
  expect_refused(1, {psk_ring({1}), psk_ring({2}), seal::Refused::wrong_secret, Refusal::wrong_secret});
}

TEST(LinkSealRefusals, AKeyThatIsNotKnown) {
  expect_refused(
      2, {static_ring({7}, {{1, 2}}), static_ring({2}, {{0, 1}}), seal::Refused::unknown_key, Refusal::unknown_key});
}

TEST(LinkSealRefusals, APinThatIsNotTheirs) {
  expect_refused(
      3, {static_ring({1}, {{1, 9}}), static_ring({2}, {{0, 1}}), seal::Refused::wrong_key, Refusal::wrong_key});
}

TEST(LinkSealRefusals, AnotherKind) {
  expect_refused(4, {psk_ring({1}), static_ring({2}, {{0, 1}}), seal::Refused::other_kind, Refusal::other_kind});
  expect_refused(5, {static_ring({1}, {{1, 2}}), psk_ring({1}), seal::Refused::other_kind, Refusal::other_kind});
}

TEST(LinkSealRefusals, WhoHasNoKeyOfThePeerSaysSoAtOnce) {
  World world = world_of(6, static_ring({1}, {}), static_ring({2}, {{0, 1}}));
  const std::uint64_t cookie = world.send(0, 1, 100);
  world.run_for(1ms);
  EXPECT_EQ(world.ends[0].sent[cookie].status, Status::refused);
  ASSERT_NE(lost_notice(world, 0), nullptr);
  EXPECT_EQ(lost_notice(world, 0)->diagnosis, Diagnosis::refused_here);
  EXPECT_EQ(lost_notice(world, 0)->refused, seal::Refused::unknown_key);
  EXPECT_EQ(counted(world, 0).hellos_sent, 0U);
}

TEST(LinkSealRefusals, AnUnsealedPeerIsRefusedWhereSealingIsRequired) {
  World world(7, {}, 2, [](std::size_t end) -> std::optional<SealSettings> {
    if (end == 0) return std::nullopt;
    return sealing_with(psk_ring({1}), 7);
  });
  const std::uint64_t to_sealing = world.send(0, 1, 100);
  world.run_until_ended();
  EXPECT_EQ(world.ends[0].sent[to_sealing].status, Status::refused);
  EXPECT_EQ(lost_notice(world, 0)->diagnosis, Diagnosis::refused_there);
  EXPECT_EQ(lost_notice(world, 0)->refused, seal::Refused::not_sealed);
  EXPECT_GT(refused(world, 1, Refusal::not_sealed), 0U);

  const std::uint64_t to_unsealed = world.send(1, 0, 100);
  world.run_until_ended();
  EXPECT_EQ(world.ends[1].sent[to_unsealed].status, Status::refused);
  EXPECT_EQ(lost_notice(world, 1)->diagnosis, Diagnosis::refused_there);
  EXPECT_EQ(lost_notice(world, 1)->refused, seal::Refused::cannot_seal);
  EXPECT_GT(refused(world, 0, Refusal::cannot_seal), 0U);
}

TEST(LinkSealPolicy, OutsideTheRangesNothingIsSealedAndAllIsTaken) {
  const std::vector<base::AddressRange> elsewhere{*base::AddressRange::parse("192.168.0.0/16")};
  World world(8, {}, 2, [&](std::size_t end) { return sealing_with(psk_ring({1}), end, elsewhere); });
  world.send(0, 1, 100);
  world.send(1, 0, 5'000);
  world.run_until_ended();
  world.expect_all_delivered();
  EXPECT_EQ(counted(world, 0).sessions_sealed, 0U);
}

TEST(LinkSealPolicy, WhoMustNotSealDoesIfThePeerMust) {
  const std::vector<base::AddressRange> all{base::AddressRange::all()};
  for (const std::size_t first : {0U, 1U}) {
    World world(9, {}, 2, [&](std::size_t end) {
      return sealing_with(psk_ring({1}), end, end == 0 ? std::vector<base::AddressRange>() : all);
    });
    world.send(first, 1 - first, 100);
    world.run_until_ended();
    world.expect_all_delivered();
    EXPECT_EQ(counted(world, 0).sessions_sealed, 1U) << first;
    EXPECT_EQ(counted(world, 1).sessions_sealed, 1U) << first;
  }
}

TEST(LinkSealPolicy, ASealedSessionIsNotReplacedByAnUnsealedOne) {
  const auto asked = [](std::size_t end) {
    return sealing_with(psk_ring({1}), end,
                        end == 0 ? std::vector{base::AddressRange::all()} : std::vector<base::AddressRange>());
  };
  World world(10, {}, 2, asked);
  open_session(world);
  ASSERT_TRUE(facts_of(world, 1).is_sealed);
  world.sealing = {};
  world.restart(0);  // a process without a key at the same address
  const std::uint64_t cookie = world.send(0, 1, 100);
  world.run_until_ended();
  EXPECT_EQ(world.ends[0].sent[cookie].status, Status::refused);
  EXPECT_TRUE(facts_of(world, 1).is_sealed);
  EXPECT_EQ(counted(world, 1).sessions_opened, 1U);
}

// Rotation ------------------------------------------------------------------------------------------------------------

TEST(LinkSealRotation, ASecretIsReplacedWhileMessagesGoOn) {
  World world(11, {}, 2, [](std::size_t end) {
    SealSettings settings = sealing_with(psk_ring({1}), end);
    settings.bytes_max = 200'000;
    return settings;
  });
  const auto talk = [&] {
    for (int i = 0; i < 10; ++i) {
      world.send(0, 1, 60'000);
      world.send(1, 0, 30'000);
    }
    world.run_for(5ms);
  };
  world.weather.loss = 0.02;
  const std::vector<std::vector<int>> steps{{1, 2}, {2, 1}, {2}};
  talk();
  for (const auto& step : steps) {
    for (const std::size_t end : {0U, 1U}) {
      world.ends[end].link->set_keyring(psk_ring(step));
      talk();
    }
  }
  world.run_until_ended();
  world.expect_all_delivered();
  EXPECT_EQ(counted(world, 0).sessions_opened, 1U);
  EXPECT_GE(counted(world, 0).keys_changed, 6U);
}

TEST(LinkSealRotation, AKeyThatIsNotKnownAnyMoreEndsTheSessionAtTheNextChange) {
  World world(12, {}, 2, [inner = all_with_static_keys(12)](std::size_t end) {
    auto settings = inner(end);
    settings->bytes_max = 200'000;
    return settings;
  });
  open_session(world);
  world.ends[1].link->set_keyring(static_ring({2}, {}));
  for (int second = 0; second < 40 && lost_notice(world, 0) == nullptr; ++second) {
    for (int i = 0; i < 4; ++i) world.send(0, 1, 50'000);
    world.run_for(1s);
  }
  ASSERT_NE(lost_notice(world, 0), nullptr);
  EXPECT_EQ(lost_notice(world, 0)->diagnosis, Diagnosis::keys_not_changed);
  EXPECT_GT(refused(world, 1, Refusal::unknown_key), 0U);
}

// An attacker on the path --------------------------------------------------------------------------------------------

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
    wire::Header header;
    header.kind = wire::Kind::reset;
    header.token = token;
    std::vector<std::byte> reset(wire::kSegmentHeaderBytes);
    wire::encode(header, reset.data());
    wire::add_checksum(reset, {});
    world.inject(1, 0, reset);
  }
  world.run_until_ended();
  world.expect_all_delivered();
  EXPECT_GT(counted(world, 0).resets_doubted, 0U);
  EXPECT_EQ(counted(world, 0).sessions_opened, 1U);
  EXPECT_EQ(counted(world, 1).sessions_opened, 1U);
  world.run_for(10s);
  EXPECT_EQ(world.ends[0].link->next_deadline(), base::kNever);
}

TEST(LinkSealAttack, AForgedResetOfAQuietSessionEndsNothingEither) {
  World world(15, {}, 2, all_with_psk(15));
  std::uint64_t token = 0;
  world.weather.drops = [&](std::size_t from, std::span<const std::byte> bytes) {
    if (from == 0 && header_of(bytes).kind == wire::Kind::data) token = header_of(bytes).token;
    return false;
  };
  open_session(world);
  wire::Header header;
  header.kind = wire::Kind::reset;
  header.token = token;
  std::vector<std::byte> reset(wire::kSegmentHeaderBytes);
  wire::encode(header, reset.data());
  wire::add_checksum(reset, {});
  world.inject(1, 0, reset);
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
