// Two transports that meet: which handles are open, that a handle of a peer that is gone does not name its successor,
// and what counts as sent.

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "engine/engine_pair_for_tests.hpp"

namespace fairlead::shm {
namespace {

using namespace std::chrono_literals;

class TransportOpen : public testing::Test {
 protected:
  static std::unique_ptr<Transport> make(std::uint16_t number) {
    return std::make_unique<Transport>(
        Connections::open(engine::direct_place(number), number + 100U, engine::direct_options()).value(),
        TransportOptions{.give_up_after = 5s, .connect_within = 1s, .waiting_max = 64});
  }
  void pass(Transport& one) {
    for (const bool attends : {false, true}) {
      attends ? one.attend(now_) : one.begin_pass(now_);
      while (one.next_peer()) {
        while (one.next_message(true) != nullptr) {
        }
        while (one.next_outcome(true) != nullptr) {
        }
      }
    }
  }
  /// Lets both make passes until `near_` has the far one, and returns its handle.
  link::PeerHandle meet() {
    const base::SocketAddress there = engine::direct_place(2);
    for (int step = 0; step < 10'000; ++step) {
      now_ += 25us;
      near_->seek(there, now_);
      for (const auto& one : {near_.get(), far_.get()}) pass(*one);
      const auto peer = near_->find(there);
      if (peer && near_->is_open(*peer)) return *peer;
    }
    ADD_FAILURE() << "they do not meet";
    return {};
  }

  base::Instant now_{1s};
  std::unique_ptr<Transport> near_ = make(1), far_ = make(2);
};

TEST_F(TransportOpen, AHandleOfAPeerThatIsGoneDoesNotNameTheNextOne) {
  const link::PeerHandle first = meet();
  far_.reset();
  for (int step = 0; step < 1000 && near_->is_open(first); ++step) pass(*near_);
  EXPECT_FALSE(near_->is_open(first));
  while (near_->next_notice()) {
  }
  far_ = make(2);
  const link::PeerHandle second = meet();
  EXPECT_EQ(second.slot, first.slot) << "otherwise this test shows nothing";
  EXPECT_TRUE(near_->is_open(second));
  EXPECT_FALSE(near_->is_open(first));
  EXPECT_FALSE(near_->is_open({first.slot + 1, first.generation}));
}

TEST_F(TransportOpen, OnlyMessagesInTheRingCountAsSent) {
  const link::PeerHandle peer = meet();
  std::vector<std::byte> memory(Outbox::kWholeMax);
  iovec piece{memory.data(), memory.size()};
  std::vector<link::Reference> references;
  for (;;) {
    link::Reference reference = 0;
    const link::Outgoing message{.envelope = {.operation = wire::Operation::message},
                                 .pieces = {&piece, 1},
                                 .size = memory.size(),
                                 .cookie = references.size()};
    const Status status = near_->submit(peer, message, now_, &reference);
    if (status == Status::again) break;
    ASSERT_EQ(status, Status::ok);
    references.push_back(reference);
  }
  const auto& sent = near_->counters();
  EXPECT_GT(sent.messages_sent, 0U);
  EXPECT_EQ(sent.messages_sent + sent.messages_waited, references.size());
  EXPECT_EQ(sent.bytes_sent, sent.messages_sent * memory.size());

  const std::uint64_t last = references.size() - 1;
  ASSERT_TRUE(near_->cancel(peer, references.back(), last)) << "it waits";
  const auto& arrived = far_->counters();
  for (int step = 0; step < 10'000 && arrived.messages_delivered < last; ++step) {
    now_ += 25us;
    for (const auto& one : {near_.get(), far_.get()}) pass(*one);
  }
  EXPECT_EQ(arrived.messages_delivered, last);
  EXPECT_EQ(sent.messages_sent, last) << "not the one that was taken back";
  EXPECT_EQ(sent.bytes_sent, arrived.bytes_delivered);
}

}  // namespace
}  // namespace fairlead::shm
