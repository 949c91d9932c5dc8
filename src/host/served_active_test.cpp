// The active messages of an application's port when the program that serves them is replaced.

#include "host/served_active.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "embedded/attach.hpp"
#include "queue/consumer.hpp"
#include "shm/arena.hpp"

namespace fairlead::host {
namespace {

constexpr std::uint64_t kBytes = 3000;  // more than fit in an event

class ServedActiveTest : public ::testing::Test {
 protected:
  void SetUp() override {
    core_ = embedded::attach_embedded(base::SocketAddress::from_ip("127.0.0.1", 0).value(), {}).value();
    memory_ = shm::Arena::create(ActiveLayout::bytes(), ActiveLayout::bytes()).value();
    new (memory_.head()) ActivePage{};
    arrivals_.emplace(queue::Consumer::create(ActiveMemory(memory_.head()).arrivals(),
                                              {.element_bytes = kArrivalBytes, .elements = kArrivalsMax + 1})
                          .value());
    sender_ = core_->open_port(1).value();
    receiver_ = core_->open_port(2).value();
    ASSERT_EQ(core_->reserve_events(sender_, 4), Status::ok);
    ASSERT_EQ(active().activate(sender_), Status::ok);
    served_ = ServedActive::open(active(), receiver_, core_->address(), memory_.head(), room_).value();
    served_->set_access({engine::AccessRule::Kind::all, 0});
  }
  void TearDown() override {
    served_->close(true);
    served_.reset();
    core_->close_port(receiver_);
    core_->close_port(sender_);
  }
  embedded::EmbeddedActive& active() { return core_->own_active(); }

  /// Sends a request of kBytes bytes, all of this value, and hands it over. Returns its slot.
  std::uint8_t arrive(std::uint8_t value) {
    std::vector<std::uint8_t> bytes(kBytes, value);
    const iovec piece{bytes.data(), bytes.size()};
    engine::Conversation conversation;
    const engine::ActiveMessage request{
        .to = {core_->address(), 2}, .name = value, .memory = {&piece, 1}, .length = kBytes, .cookie = value};
    EXPECT_EQ(active().send_active(sender_, request, conversation), Status::ok);
    const std::byte* element = nullptr;
    const auto end = base::MonotonicClock::now() + std::chrono::seconds(10);  // ends a failing test only
    while (element == nullptr && base::MonotonicClock::now() < end) {
      core_->progress();
      served_->give();
      element = arrivals_->get();
    }
    engine::Completion completion;
    while (core_->next_event(sender_, completion)) {
    }
    ArrivalHead head;
    if (element == nullptr) {
      ADD_FAILURE() << "no arrival";
    } else {
      std::memcpy(&head, element, sizeof head);
    }
    return head.slot;
  }
  bool holds(std::uint8_t slot, std::uint8_t value) const {
    const std::byte* const bytes = ActiveMemory(memory_.head()).slot(slot);
    return std::all_of(bytes, bytes + kBytes, [&](std::byte byte) { return byte == std::byte{value}; });
  }
  /// As at a replacement of the daemon; the engine stays.
  void replace() {
    const ServedActiveState state = served_->save(memory_.head());
    served_.reset();
    served_ = ServedActive::resume(active(), receiver_, core_->address(), memory_.head(), room_, state).value();
  }

  std::shared_ptr<embedded::EmbeddedCore> core_;
  shm::Arena memory_;
  ActiveRoom room_;
  std::optional<queue::Consumer> arrivals_;
  engine::PortHandle sender_, receiver_;
  std::unique_ptr<ServedActive> served_;
};

// Regression: no test noticed a program that took all slots to be free.
TEST_F(ServedActiveTest, ASlotInUseIsNotTakenAfterAReplacement) {
  constexpr std::uint8_t kBefore = 70;  // slots of both words
  for (std::uint8_t value = 1; value <= kBefore; ++value) ASSERT_EQ(arrive(value), value - 1);
  replace();
  EXPECT_EQ(arrive(kBefore + 1), kBefore);
  for (std::uint8_t value = 1; value <= kBefore; ++value) EXPECT_TRUE(holds(value - 1, value)) << int{value};
}

TEST_F(ServedActiveTest, ASlotGivenBackDuringAReplacementIsTaken) {
  constexpr std::uint8_t kSlots = ActivePage::kSlots;
  for (std::uint8_t value = 1; value <= kSlots; ++value) ASSERT_LT(arrive(value), kSlots);
  ActiveMemory(memory_.head()).page().given_back[1].fetch_or(std::uint64_t{1} << 5);
  replace();
  EXPECT_EQ(arrive(kSlots + 1), 64 + 5);
}

}  // namespace
}  // namespace fairlead::host
