// Short messages that have an owner: their outcomes, and finding them by name until then.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "link/link.hpp"
#include "link/reference.hpp"
#include "link/segment.hpp"

namespace fairlead::link {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kOwner = 3;

class ShortSendsOfLink : public ::testing::Test {
 protected:
  struct End {
    base::SocketAddress address;
    Link link;
    std::vector<std::uint64_t> arrived;  // the first byte of each message
    std::vector<OperationHandle> names;  // names of received messages, for reports to the sender
  };

  PeerHandle peer(End& from, End& to) { return from.link.peer(to.address, 1472, now_).value(); }

  /// Sends one message per size. Cookies continue from 1; the bytes of a message have the value of its cookie.
  std::vector<OperationHandle> send(const std::vector<std::size_t>& sizes, std::uint32_t owner = kOwner) {
    std::vector<std::vector<std::byte>> bytes;
    std::vector<iovec> pieces;
    std::vector<SendPart> parts;
    for (const std::size_t size : sizes) bytes.emplace_back(size, static_cast<std::byte>(++cookie_));
    for (auto& one : bytes) pieces.push_back({one.data(), one.size()});
    for (std::size_t i = 0; i < sizes.size(); ++i)
      parts.push_back({{&pieces[i], 1}, sizes[i], cookie_ - sizes.size() + i + 1});
    std::vector<OperationHandle> names(sizes.size());
    const ShortSend send{.source_port = 1, .target_port = 2, .owner = owner, .parts = parts};
    names.resize(near_.link.send_short(peer(near_, far_), send, now_, names));
    return names;
  }

  /// Carries what `from` has to send now to `to`, or drops it if `is_lost`.
  void carry(End& from, End& to, bool is_lost = false) {
    while (from.link.next_train(now_, 65'000, 64, train_)) {
      std::vector<std::byte> bytes;
      for (const iovec& piece : std::span(train_.pieces, train_.piece_count)) {
        const auto* const begin = static_cast<const std::byte*>(piece.iov_base);
        bytes.insert(bytes.end(), begin, begin + piece.iov_len);
      }
      for (std::span<const std::byte> rest = bytes; !is_lost && !rest.empty();) {
        const auto datagram = rest.first(std::min<std::size_t>(train_.datagram_size, rest.size()));
        rest = rest.subspan(datagram.size());
        to.link.receive(from.address, datagram, now_, 1472);
        while (const auto delivery = to.link.next_delivery()) {
          if (delivery->bytes.empty()) continue;
          to.arrived.push_back(std::to_integer<std::uint64_t>(delivery->bytes[0]));
          const std::uint64_t name = delivery->envelope.cookie;
          to.names.push_back({static_cast<std::uint32_t>(name), static_cast<std::uint32_t>(name >> 32)});
        }
      }
    }
  }
  void pass(base::Duration span = 100us) {
    now_ += span;
    for (End* end : {&near_, &far_}) end->link.expire(now_);
    carry(near_, far_);
    carry(far_, near_);
  }
  void open() {
    send({1});
    for (int i = 0; i < 20; ++i) pass();
    ASSERT_EQ(outcomes().size(), 1U);
    far_.arrived.clear();
    far_.names.clear();
  }
  std::map<std::uint64_t, Outcome> outcomes() {
    std::map<std::uint64_t, Outcome> all;
    while (const auto outcome = near_.link.next_outcome())
      EXPECT_TRUE(all.emplace(outcome->cookie, *outcome).second) << "two outcomes of " << outcome->cookie;
    return all;
  }
  void expect_at_rest() {
    EXPECT_TRUE(near_.link.counters().is_consistent());
    EXPECT_EQ(near_.link.counters().messages_pending, 0U);
    EXPECT_EQ(near_.link.count_pending(kOwner), 0U);
    while (near_.link.next_notice()) {
    }
    EXPECT_FALSE(near_.link.has_news());
  }

  static base::SocketAddress place(std::uint8_t number) {
    return {.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, number}, .scope = 0, .port = 20480};
  }

  base::Instant now_{1s};
  End near_{.address = place(1), .link = Link({}, 11, 1), .arrived = {}, .names = {}};
  End far_{.address = place(2), .link = Link({}, 12, 2), .arrived = {}, .names = {}};
  std::uint64_t cookie_ = 0;
  Train train_;
};

TEST_F(ShortSendsOfLink, AllEndWithTheirOwnerAndLength) {
  std::vector<std::size_t> sizes;
  for (std::size_t i = 0; i < 100; ++i) sizes.push_back(1 + i * 7);
  ASSERT_EQ(send(sizes).size(), sizes.size());
  EXPECT_EQ(near_.link.count_pending(kOwner), sizes.size());
  std::map<std::uint64_t, Outcome> all;
  for (int i = 0; i < 20; ++i) {
    pass();
    all.merge(outcomes());
  }
  ASSERT_EQ(all.size(), sizes.size());
  for (const auto& [cookie, outcome] : all) {
    EXPECT_EQ(outcome.owner, kOwner);
    EXPECT_EQ(outcome.length, sizes[cookie - 1]);
    EXPECT_EQ(outcome.status, Status::ok);
  }
  EXPECT_EQ(far_.arrived.size(), sizes.size());
  expect_at_rest();
}

TEST_F(ShortSendsOfLink, OneThatIsTooLongEndsTheRow) {
  EXPECT_EQ(send({10, 20, LinkOptions{}.embedded_max + 1, 30}).size(), 2U);
  for (int i = 0; i < 20; ++i) pass();
  EXPECT_EQ(outcomes().size(), 2U);
}

TEST_F(ShortSendsOfLink, WhatIsNotSentDoesNotArriveAfterItsEnd) {
  const auto names = send({8, 100, 8, 50, 8, 700});
  for (const std::size_t index : {2U, 0U, 5U}) {
    EXPECT_FALSE(near_.link.end_early(kOwner + 1, names[index])) << "another's";
    const auto end = near_.link.end_early(kOwner, names[index]);
    ASSERT_TRUE(end) << index;
    EXPECT_EQ(end->cookie, index + 1);
    EXPECT_EQ(end->status, Status::canceled);
    EXPECT_FALSE(near_.link.end_early(kOwner, names[index])) << "twice";
  }
  for (int i = 0; i < 20; ++i) pass();
  EXPECT_EQ(far_.arrived, (std::vector<std::uint64_t>{2, 4, 5}));
  EXPECT_EQ(outcomes().size(), 3U);
  for (const OperationHandle name : names) EXPECT_FALSE(near_.link.end_early(kOwner, name)) << "all have ended";
  expect_at_rest();
}

TEST_F(ShortSendsOfLink, WhatIsCancelledIsOwedToNobody) {
  open();
  EXPECT_FALSE(near_.link.is_owing());
  auto names = send({8, 8, 8});
  carry(near_, far_, true);
  for (const auto name : send({8, 8})) names.push_back(name);  // not sent yet
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_TRUE(near_.link.is_owing()) << i;
    ASSERT_TRUE(near_.link.end_early(kOwner, names[i])) << i;
  }
  EXPECT_EQ(near_.link.counters().messages_pending, 3U) << "they are sent again";
  EXPECT_FALSE(near_.link.is_owing());
  for (int i = 0; i < 100; ++i) pass();
  EXPECT_EQ(far_.arrived.size(), 3U);
  expect_at_rest();
}

TEST_F(ShortSendsOfLink, OneThatIsOutArrivesAndItsOutcomeIsNobodys) {
  open();
  const auto names = send({8, 8, 8});
  carry(near_, far_, true);
  ASSERT_TRUE(near_.link.end_early(kOwner, names[1]));
  EXPECT_TRUE(near_.link.is_owing());
  for (int i = 0; i < 100; ++i) pass();
  EXPECT_EQ(far_.arrived.size(), 3U) << "sent again";
  const auto all = outcomes();
  EXPECT_EQ(all.size(), 2U);
  EXPECT_FALSE(all.contains(3));
  expect_at_rest();
}

TEST_F(ShortSendsOfLink, OneWhoseOutcomeIsNewsEndsWithThat) {
  open();
  const auto names = send({8, 8, 8});
  for (int i = 0; i < 5; ++i) pass();
  const auto end = near_.link.end_early(kOwner, names[0]);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->status, Status::ok);
  EXPECT_FALSE(near_.link.end_early(kOwner, names[0]));
  EXPECT_EQ(outcomes().size(), 2U);
  send({8});
  for (int i = 0; i < 5; ++i) pass();
  const auto all = outcomes();
  ASSERT_EQ(all.size(), 1U);
  expect_at_rest();
}

// The owner chooses its cookies, so a message without an owner may have the same cookie.
TEST_F(ShortSendsOfLink, OneIsNotTakenForAnotherOfTheSameCookie) {
  const auto names = send({8});
  std::array<std::byte, 4> bytes{std::byte{77}};
  const iovec piece{bytes.data(), bytes.size()};
  Reference reference = 0;
  const PeerHandle far = peer(near_, far_);
  const Outgoing nobodys{.envelope = {}, .pieces = {&piece, 1}, .size = bytes.size(), .cookie = cookie_};
  ASSERT_EQ(near_.link.submit(far, nobodys, now_, &reference), Status::ok);
  EXPECT_TRUE(near_.link.cancel(far, reference, cookie_));
  for (int i = 0; i < 20; ++i) pass();
  EXPECT_EQ(far_.arrived, (std::vector<std::uint64_t>{cookie_}));
  EXPECT_FALSE(near_.link.end_early(kOwner + 1, names[0]));
}

TEST_F(ShortSendsOfLink, APlaceThatIsUsedAgainHasOtherNames) {
  open();
  OperationHandle before;
  for (int i = 0; i < 300; ++i) {
    const auto one = send({8}), two = send({8});
    ASSERT_FALSE(near_.link.end_early(kOwner, before)) << i;
    before = one[0];
    ASSERT_TRUE(near_.link.end_early(kOwner, one[0]));
    ASSERT_FALSE(near_.link.end_early(kOwner, one[0]));
    ASSERT_TRUE(near_.link.end_early(kOwner, two[0]));
    ASSERT_FALSE(near_.link.end_early(kOwner, one[0]));
  }
  // More messages than a segment has numbers, behind one that stays in it.
  const auto stays = send({8});
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(near_.link.end_early(kOwner, send({8})[0]));
  EXPECT_TRUE(near_.link.end_early(kOwner, stays[0]));
  pass();
  EXPECT_TRUE(far_.arrived.empty());
  expect_at_rest();
}

TEST_F(ShortSendsOfLink, WhatEndedWithItsPeerCannotBeTakenBack) {
  std::array<std::byte, 4> bytes{};
  const iovec piece{bytes.data(), bytes.size()};
  Reference reference = 0;
  const PeerHandle far = peer(near_, far_);
  const Outgoing nobodys{.envelope = {}, .pieces = {&piece, 1}, .size = bytes.size(), .cookie = 5};
  ASSERT_EQ(near_.link.submit(far, nobodys, now_, &reference), Status::ok);
  near_.link.unreachable(far_.address, Obstacle::nobody_listens, now_);
  EXPECT_FALSE(near_.link.cancel(far, reference, 5));
  const auto all = outcomes();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all.at(5).status, Status::refused);
  expect_at_rest();
}

// The receiver's report may come in the datagram of the ACK, which the link reads first.
TEST_F(ShortSendsOfLink, ItsReceiverMayRefuseItUntilItsOutcomeIsFetched) {
  open();
  const PeerHandle far = peer(near_, far_);
  send({8, 8, 8});
  carry(near_, far_);
  ASSERT_EQ(far_.names.size(), 3U);
  EXPECT_TRUE(near_.link.mark_refused(far, far_.names[0], Status::refused)) << "before";
  for (int i = 0; i < 5; ++i) pass();
  EXPECT_TRUE(near_.link.mark_refused(far, far_.names[2], Status::no_buffer)) << "after";
  const auto all = outcomes();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all.at(2).status, Status::refused);
  EXPECT_EQ(all.at(3).status, Status::ok);
  EXPECT_EQ(all.at(4).status, Status::no_buffer);
  EXPECT_FALSE(near_.link.mark_refused(far, far_.names[1], Status::refused)) << "it has ended";
  expect_at_rest();
}

TEST_F(ShortSendsOfLink, ItsRefusalStaysTheCauseIfThePeerIsLostThen) {
  open();
  const PeerHandle far = peer(near_, far_);
  send({8, 8});
  carry(near_, far_);
  ASSERT_EQ(far_.names.size(), 2U);
  EXPECT_TRUE(near_.link.mark_refused(far, far_.names[0], Status::refused));
  near_.link.disconnect(far, now_);
  const auto all = outcomes();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all.at(2).status, Status::refused);
  EXPECT_EQ(all.at(3).status, Status::canceled);
  expect_at_rest();
}

TEST_F(ShortSendsOfLink, NobodyElseCanRefuseIt) {
  open();
  const PeerHandle other = near_.link.peer(place(3), 1472, now_).value();
  const auto names = send({8});
  EXPECT_FALSE(near_.link.mark_refused(other, names[0], Status::refused));
  const PeerHandle far = peer(near_, far_);
  for (std::uint32_t bit = 0; bit < 64; ++bit) {
    const std::uint64_t word = word_of(names[0]) ^ std::uint64_t{1} << bit;
    const OperationHandle lie{static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32)};
    if (bit != 30 && bit != 31) EXPECT_FALSE(near_.link.mark_refused(far, lie, Status::refused)) << bit;
  }
  for (int i = 0; i < 5; ++i) pass();
  EXPECT_EQ(outcomes().begin()->second.status, Status::ok);
}

TEST_F(ShortSendsOfLink, AllOfOneOwnerCanBeEnded) {
  open();
  const auto mine = send(std::vector<std::size_t>(60, 8));
  carry(near_, far_, true);
  send(std::vector<std::size_t>(60, 8), kOwner + 1);
  send(std::vector<std::size_t>(60, 8));
  std::uint32_t first = 0;
  std::size_t ended = 0;
  while (const auto end = near_.link.end_any_early(kOwner, first)) {
    EXPECT_EQ(end->owner, kOwner);
    ++ended;
  }
  EXPECT_EQ(ended, 120U);
  EXPECT_EQ(near_.link.count_pending(kOwner), 0U);
  EXPECT_EQ(near_.link.count_pending(kOwner + 1), 60U);
  for (int i = 0; i < 100; ++i) pass();
  EXPECT_EQ(outcomes().size(), 60U);
  EXPECT_EQ(far_.arrived.size(), 120U) << "those that were out, and the other's";
  expect_at_rest();
}

TEST_F(ShortSendsOfLink, AllEndWithTheirPeer) {
  open();
  send(std::vector<std::size_t>(40, 8));
  carry(near_, far_, true);
  const auto queued = send(std::vector<std::size_t>(40, 8));
  near_.link.disconnect(peer(near_, far_), now_);
  const auto end = near_.link.end_early(kOwner, queued[7]);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->status, Status::canceled);
  const auto all = outcomes();
  EXPECT_EQ(all.size(), 79U);
  for (const auto& [cookie, outcome] : all) EXPECT_EQ(outcome.status, Status::canceled) << cookie;
  expect_at_rest();
}

}  // namespace
}  // namespace fairlead::link
