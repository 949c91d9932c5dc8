// Handles of peers: which are open, and that a handle of a peer that is gone does not name its successor.

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "engine/engine_pair_for_tests.hpp"

namespace fairlead::shm {
namespace {

using namespace std::chrono_literals;

class TransportOpen : public testing::Test {
 protected:
  static std::unique_ptr<Transport> make(std::uint16_t number) {
    return std::make_unique<Transport>(
        Connections::open(engine::direct_place(number), number + 100U, engine::direct_options()).value(),
        TransportOptions{.give_up_after = 5s, .connect_within = 1s});
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
  far_ = make(2);
  const link::PeerHandle second = meet();
  EXPECT_EQ(second.slot, first.slot) << "otherwise this test shows nothing";
  EXPECT_TRUE(near_->is_open(second));
  EXPECT_FALSE(near_->is_open(first));
  EXPECT_FALSE(near_->is_open({first.slot + 1, first.generation}));
}

}  // namespace
}  // namespace fairlead::shm
