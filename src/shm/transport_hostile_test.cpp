// A malicious local peer writes arbitrary data over everything that it shares with us. It may only end its own
// connection: nothing crashes, and nothing outside the rings is read (this also runs under the sanitizers).

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <random>
#include <vector>

#include "base/place_for_tests.hpp"
#include "shm/transport.hpp"
#include "shm/transport_fast_path.hpp"

namespace fairlead::shm {
namespace {

using namespace std::chrono_literals;

base::SocketAddress place(std::uint16_t number) {
  return base::place_for_tests(number);
}

class TransportHostile : public testing::Test {
 protected:
  static constexpr std::uint32_t kRing = 64 * 1024;

  std::unique_ptr<Connections> connections(std::uint16_t number) {
    return Connections::open(place(number), random_(), {.ring_bytes = kRing}).value();
  }

  void read(std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) sum_ += std::to_integer<std::uint64_t>(byte);
    ++deliveries_;
  }

  void take_all() {
    while (shm_.next_peer()) {
      while (const link::Delivery* const delivery = shm_.next_message(true)) {
        ASSERT_LE(delivery->offset, delivery->size);
        ASSERT_LE(delivery->bytes.size(), delivery->size - delivery->offset);
        read(delivery->bytes);
      }
      while (const link::Outcome* const end = shm_.next_outcome(true)) {
        if (end->owner != link::Outcome::kNobody) EXPECT_EQ(end->cookie, end->owner);
        ++outcomes_;
      }
    }
  }
  void collect() {
    now_ += 10us;
    shm_.begin_pass(now_);
    take_all();
    shm_.attend(now_);
    take_all();
    while (shm_.next_outcome()) ++outcomes_;
    while (const auto notice = shm_.next_notice()) {
      lost_ += notice->kind == link::Notice::Kind::lost ? 1 : 0;
      reassemblies_lost_ += notice->kind == link::Notice::Kind::reassembly_lost ? 1 : 0;
    }
  }

  // Writes a record with the right mark and a random head, often almost right.
  void write_record(Connection& to) {
    std::array<std::byte, 2048> body;
    for (std::byte& byte : body) byte = static_cast<std::byte>(random_());
    const auto kind = wire::kShmForms[random_() % wire::kShmForms.size()].kind;
    const std::uint64_t size = random_() % 8 == 0 ? random_() : random_() % 5000;
    wire::encode_shm(body.data(), kind, {.operation = wire::Operation::message, .key = random_() % 2}, size);
    if (random_() % 10 == 0) body[0] = static_cast<std::byte>(random_());  // also kinds that there are not
    const std::size_t length = random_() % body.size();
    std::byte* out = to.writer.reserve(length);
    if (out == nullptr) return;
    std::memcpy(out, body.data(), length);
    to.writer.publish(length, random_() % 16 == 0 ? random_() : to.reader.read());
    to.alert();
  }

  // Overwrites words of the shared page, including ours, and of our doorbell with plausible values.
  void lie(Connection& to) {
    auto& page = *reinterpret_cast<PairPage*>(to.memory.head());
    PairSide& side = page.sides[random_() % 2];
    const std::uint64_t word = random_() % 3;
    switch (random_() % 5) {
      case 0:
        return side.at.store(word);
      case 1:
        return side.sees.store(static_cast<std::uint32_t>(word));
      case 2:
        return to.doorbell.take([](std::uint32_t) {});
      default:
        side.is_watching.store(static_cast<std::uint32_t>(word));
        to.doorbell.ring(static_cast<std::uint32_t>(random_() % 3));
    }
  }

  // Overwrites anything in the shared memory, including the marks of the next records.
  void scribble(const Connection& to) {
    const std::size_t length = random_() % 64;
    const std::size_t where = random_() % 3;
    std::byte* memory = where == 0 ? to.memory.head() : to.memory.ring(where - 1);
    const std::size_t bytes = where == 0 ? 4096 : kRing;
    for (std::size_t at = random_() % (bytes - 64), i = 0; i < length; ++i)
      memory[at + i] = static_cast<std::byte>(random_());
  }

  std::mt19937_64 random_{1};
  base::Instant now_{1s};
  Transport shm_{connections(0), {.give_up_after = 5s, .connect_within = 1s}};
  std::uint64_t sum_ = 0;
  int deliveries_ = 0, outcomes_ = 0, lost_ = 0, reassemblies_lost_ = 0, sleeps_ = 0;
};

TEST_F(TransportHostile, EndsItsOwnConnectionAndNothingElse) {
  constexpr int kLives = 150, kSteps = 60;
  std::vector<std::byte> message(20000);
  iovec piece{message.data(), message.size()};
  int opened = 0, submitted = 0;
  for (int life = 0; life < kLives; ++life) {
    const auto attacker = connections(1);
    ASSERT_TRUE(attacker->ask(place(0), {}));
    collect();
    attacker->attend({});
    Connection& to = attacker->peer(attacker->find(place(0)));
    ASSERT_EQ(to.state, Connection::State::open);
    ++opened;
    for (int step = 0; step < kSteps; ++step) {
      const auto draw = random_() % 10;
      if (draw < 5) write_record(to);
      if (draw == 5 && life % 2 == 0) scribble(to);
      if (draw == 6) to.doorbell.ring(static_cast<std::uint32_t>(random_() % DoorbellPage::kBits));
      if (draw >= 8) lie(to);
      // The attacker keeps writing while we sleep.
      if (random_() % 4 == 0 && shm_.arm()) {
        ++sleeps_;
        lie(to);
        if (life % 3 == 0) scribble(to);
        if (random_() % 2 == 0) write_record(to);
        shm_.connections().watch().disarm();
      }
      if (draw == 7) {
        const link::SendPart part{.memory = {&piece, 1}, .length = random_() % 200, .cookie = 5};
        if (const auto peer = shm_.find(place(1)); peer && step % 2 == 0) {
          link::OperationHandle name;
          submitted += static_cast<int>(shm_.send_short(*peer, {.owner = 5, .parts = {&part, 1}}, now_, {&name, 1}));
        } else if (peer)
          submitted += shm_.submit(*peer, {.envelope = {}, .pieces = {&piece, 1}, .size = random_() % message.size()},
                                   now_) == Status::ok;
      }
      collect();
    }
  }
  collect();
  collect();
  EXPECT_EQ(lost_, opened);
  EXPECT_EQ(outcomes_, submitted) << "each message ends once";
  EXPECT_GT(deliveries_, 50);
  EXPECT_GT(shm_.connections().counters().refused_record, 50u);
  EXPECT_GT(sleeps_, 100);
  EXPECT_FALSE(shm_.has_any(Transport::Pendings::all));
}

// A message that never ends would hold its destination memory.
TEST_F(TransportHostile, IsEndedWhenItDoesNotGoOnWithAMessage) {
  const auto attacker = connections(1);
  ASSERT_TRUE(attacker->ask(place(0), {}));
  collect();
  attacker->attend({});
  Connection& to = attacker->peer(attacker->find(place(0)));
  constexpr std::size_t kPart = 100, kPartsMax = 5;
  const auto write = [&](wire::ShmKind kind) {
    const std::size_t head = wire::shm_head_bytes(kind);
    std::byte* const out = to.writer.reserve(head + kPart);
    ASSERT_NE(out, nullptr);
    wire::encode_shm(out, kind, {.operation = wire::Operation::message}, 10'000);
    std::memset(out + head, 1, kPart);
    to.writer.publish(head + kPart, to.reader.read());
    to.alert();
  };
  write(wire::ShmKind::first);
  collect();
  // A slow message is permitted while it makes progress.
  for (std::size_t part = 0; part < kPartsMax; ++part) {
    for (int second = 0; second < 4; ++second) now_ += 1s, collect();
    write(wire::ShmKind::next);
    collect();
    ASSERT_EQ(lost_, 0);
  }
  for (int second = 0; second < 7; ++second) now_ += 1s, collect();
  collect();
  EXPECT_EQ(lost_, 1);
  EXPECT_EQ(reassemblies_lost_, 1);
}

}  // namespace
}  // namespace fairlead::shm
