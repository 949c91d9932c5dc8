// Sealed sessions change their keys under load, and users replace the secrets.

#include <gtest/gtest.h>

#include <map>

#include "link/sealed_world_for_tests.hpp"
#include "wire/segment.hpp"

namespace fairlead::link {
namespace {

using namespace testing;

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
    EXPECT_GE(counted(world, 0).keys_changed, 4U) << seed;
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

// A user replaces a secret or a key -----------------------------------------------------------------------------------

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

}  // namespace
}  // namespace fairlead::link
