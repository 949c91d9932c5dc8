// An attacker on the path between encrypting engines can delay and drop datagrams, and nothing else.

#include <gtest/gtest.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <optional>
#include <random>

#include "tests/path_attacker.hpp"
#include "tests/sealed_wire.hpp"
#include "wire/segment.hpp"

namespace fairlead::tests::sealed {
namespace {

/// Messages pass through an attacker, which acts on each datagram.
class AttackedWire : public SealedWire, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    std::array<Settings, 2> settings;
    if (GetParam()) {
      settings = acquainted();
    } else {
      keys_.write("psk", psk_line('a'));
      settings = {psk("psk"), psk("psk")};
    }
    for (std::size_t i = 0; i < 2; ++i)
      nodes_[i].emplace(static_cast<int>(i + 1), with(settings[i], {{"seal_rekey_bytes", "262144"}}));
    path_.emplace(std::array{nodes_[0]->address(), nodes_[1]->address()});
  }

  /// Sends `count` messages in each direction and calls act(to, bytes) for each datagram, until all messages have
  /// arrived.
  template <typename Act>
  void talk(std::size_t count, Act&& act) {
    for (std::size_t i = 0; i < 2; ++i) nodes_[i]->expect(count, kSizeMost);
    for (std::size_t i = 0; i < count; ++i) {
      nodes_[0]->send(path_->seen_by(0), 1 + i * 977 % kSizeMost);
      nodes_[1]->send(path_->seen_by(1), 1 + i * 31 % 700);
    }
    sent_ += count;
    EXPECT_TRUE(comes_true([&] {
      path_->step(act);
      for (auto& node : nodes_) node->step();
      return std::ranges::all_of(nodes_, [&](const std::optional<SealedNode>& node) {
        return node->received.size() == sent_ && node->statuses.size() == sent_;
      });
    }));
    nodes_[0]->expect_received_all_of(*nodes_[1]);
    nodes_[1]->expect_received_all_of(*nodes_[0]);
  }
  void pass(std::size_t to, const Bytes& bytes) { path_->send(to, bytes); }
  void expect_one_session() const {
    for (const auto& node : nodes_) {
      EXPECT_EQ(node->counter("link.sessions_opened"), 1U);
      EXPECT_EQ(node->counter("link.sessions_sealed"), 1U);
      EXPECT_EQ(node->counter("link.sessions_lost"), 0U);
    }
  }
  std::uint64_t refused(std::string_view why) const { return nodes_[0]->refused(why) + nodes_[1]->refused(why); }

  static constexpr std::size_t kSizeMost = 60'000;
  std::array<std::optional<SealedNode>, 2> nodes_;
  std::optional<PathAttacker> path_;
  std::size_t sent_ = 0;
  std::mt19937_64 random_{1};
};

TEST_P(AttackedWire, ShowsNothingOfWhatIsSaid) {
  std::size_t datagrams = 0;
  talk(20, [&](std::size_t to, const Bytes& bytes) {
    ++datagrams;
    for (const std::uint64_t number : {1U, 7U, 19U}) {
      const Bytes text = payload(number, 16);
      EXPECT_EQ(::memmem(bytes.data(), bytes.size(), text.data(), text.size()), nullptr);
    }
    pass(to, bytes);
  });
  EXPECT_GT(datagrams, 20U);
  expect_one_session();
}

TEST_P(AttackedWire, TakesNothingThatWasChanged) {
  talk(60, [&](std::size_t to, const Bytes& bytes) {
    for (int i = 0; i < 3; ++i) {
      Bytes changed = bytes;
      changed[random_() % changed.size()] ^= static_cast<std::byte>(1U << (random_() % 8));
      path_->send(to, changed);
    }
    pass(to, bytes);
  });
  EXPECT_GT(refused("bad_tag"), 20U);
  expect_one_session();
}

TEST_P(AttackedWire, TakesNothingThatWasCutOrGrown) {
  talk(60, [&](std::size_t to, const Bytes& bytes) {
    Bytes longer = bytes;
    longer.resize(bytes.size() + 1 + random_() % 64);
    path_->send(to, longer);
    path_->send(to, std::span(bytes).first(random_() % bytes.size()));
    pass(to, bytes);
  });
  EXPECT_GT(refused("bad_tag"), 20U);
  expect_one_session();
}

TEST_P(AttackedWire, TakesNothingTwice) {
  std::array<std::vector<Bytes>, 2> seen;
  talk(60, [&](std::size_t to, const Bytes& bytes) {
    pass(to, bytes);
    seen[to].push_back(bytes);
    path_->send(to, bytes);
    path_->send(to, seen[to][random_() % seen[to].size()]);
  });
  EXPECT_GT(refused("replayed"), 20U);
  expect_one_session();
}

TEST_P(AttackedWire, TakesNothingOfItsOwn) {
  talk(60, [&](std::size_t to, const Bytes& bytes) {
    path_->send(1 - to, bytes);
    pass(to, bytes);
  });
  EXPECT_GT(refused("unknown_token") + refused("bad_tag") + refused("late_hello_ack"), 20U);
  expect_one_session();
}

// The attacker resends headers as each kind of unencrypted segment, with a valid checksum.
TEST_P(AttackedWire, TakesNothingInTheClear) {
  talk(60, [&](std::size_t to, const Bytes& bytes) {
    pass(to, bytes);
    for (std::uint8_t kind = 1; kind <= 13; ++kind) {
      Bytes forged = bytes;
      forged[1] = std::byte{kind};
      forged[2] &= std::byte{31};
      wire::add_checksum(forged, {});
      path_->send(to, forged);
      forged.resize(wire::kSegmentHeaderBytes);
      wire::add_checksum(forged, {});
      path_->send(to, forged);
    }
  });
  EXPECT_GT(refused("not_sealed"), 20U);
  expect_one_session();
}

// The attacker does all of this from the first datagram on, and also drops, delays and reorders datagrams.
TEST_P(AttackedWire, IsDelayedAndDroppedAndNothingElse) {
  struct Kept {
    std::size_t to = 0;
    Bytes bytes;
  };
  std::vector<Kept> kept;
  const auto meddle = [&](std::size_t to, const Bytes& bytes) {
    if (kept.size() < 2000) kept.push_back({to, bytes});
    Kept again = kept[random_() % kept.size()];
    const std::uint64_t way = random_() % 5;
    if (way == 0) again.to = 1 - again.to;
    if (way == 1) again.bytes[random_() % again.bytes.size()] ^= std::byte{4};
    if (way == 2) again.bytes.resize(random_() % again.bytes.size());
    if (way == 3 && again.bytes.size() >= wire::kSegmentHeaderBytes) {
      again.bytes[1] = static_cast<std::byte>(1 + random_() % 13);
      again.bytes[2] &= std::byte{31};
      wire::add_checksum(again.bytes, {});
    }
    path_->send(again.to, again.bytes);
    if (random_() % 25 != 0) pass(to, bytes);
  };
  talk(150, meddle);
  // A lost datagram may also delay a key change.
  for (int i = 0; i < 20 && nodes_[0]->counter("link.keys_changed") < 2; ++i) talk(50, meddle);
  EXPECT_GT(refused("bad_tag"), 0U);
  EXPECT_GT(refused("replayed"), 0U);
  EXPECT_GE(nodes_[0]->counter("link.keys_changed"), 2U);
  expect_one_session();
}

INSTANTIATE_TEST_SUITE_P(BothKinds, AttackedWire, testing::Bool(),
                         [](const auto& kind) { return kind.param ? "PinnedKeys" : "SharedSecret"; });

}  // namespace
}  // namespace fairlead::tests::sealed
