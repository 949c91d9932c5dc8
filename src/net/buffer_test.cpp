#include <fairlead/net/buffer.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <latch>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include <fairlead/net/transfer_machine.hpp>

#include "net/domain_state.hpp"

namespace fairlead::net {
namespace {

class BufferTest : public ::testing::Test {
 protected:
  Domain domain_ = Domain::open().value();
};

TEST_F(BufferTest, OwnsZeroedMemory) {
  const auto buffer = Buffer::allocate(domain_, 10000).value();
  EXPECT_EQ(buffer->size(), 10000U);
  EXPECT_EQ(buffer->segment_count(), 1U);
  EXPECT_EQ(buffer->segment(0).size(), 10000U);
  EXPECT_EQ(buffer->segment(0)[9999], std::byte{0});
  EXPECT_TRUE(buffer->segment(1).empty());
  EXPECT_FALSE(buffer->is_queued());
  EXPECT_EQ(buffer->descriptor(), BufferDescriptor{});
}

TEST_F(BufferTest, GatherAndScatter) {
  std::array<std::byte, 3> first{};
  std::array<std::byte, 1> second{};
  std::array<std::byte, 4> third{};
  const std::array<std::span<std::byte>, 3> segments{first, second, third};
  const auto buffer = Buffer::borrow(domain_, segments).value();
  EXPECT_EQ(buffer->size(), 8U);
  EXPECT_EQ(buffer->segment_count(), 3U);

  constexpr std::string_view kText = "abcdefgh";
  EXPECT_EQ(buffer->write(0, std::as_bytes(std::span(kText))), 8U);
  EXPECT_EQ(first[2], std::byte{'c'});
  EXPECT_EQ(second[0], std::byte{'d'});
  EXPECT_EQ(third[3], std::byte{'h'});

  std::array<std::byte, 4> middle{};
  EXPECT_EQ(buffer->read(2, middle), 4U);
  EXPECT_EQ(middle[0], std::byte{'c'});
  EXPECT_EQ(middle[3], std::byte{'f'});
  EXPECT_EQ(buffer->read(6, middle), 2U);
  EXPECT_EQ(buffer->read(8, middle), 0U);
  EXPECT_EQ(buffer->write(7, middle), 1U);

  EXPECT_EQ(buffer->bytes(1, 8).data(), &first[1]);
  EXPECT_EQ(buffer->bytes(1, 8).size(), 2U);
  EXPECT_EQ(buffer->bytes(4, 2).data(), &third[0]);
  EXPECT_EQ(buffer->bytes(4, 2).size(), 2U);
  EXPECT_TRUE(buffer->bytes(8, 1).empty());
}

TEST_F(BufferTest, RefusesWhatCannotBe) {
  EXPECT_EQ(Buffer::allocate(domain_, 0).error().status, Status::invalid);
  EXPECT_EQ(Buffer::allocate(domain_, domain_.buffer_size_max() + 1).error().status, Status::too_big);
  EXPECT_EQ(Buffer::borrow(domain_, std::span<const std::span<std::byte>>()).error().status, Status::invalid);
  EXPECT_EQ(Buffer::borrow(domain_, std::span<std::byte>()).error().status, Status::invalid);
  const auto nowhere = Buffer::borrow(domain_, std::span(static_cast<std::byte*>(nullptr), 100));
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().status, Status::invalid);
  EXPECT_NE(nowhere.error().message.find("null"), std::string::npos) << nowhere.error().message;
  std::byte byte{};
  const std::vector<std::span<std::byte>> many(domain_.segments_max() + 1, std::span(&byte, 1));
  EXPECT_EQ(Buffer::borrow(domain_, many).error().status, Status::too_big);
  const std::vector<std::span<std::byte>> most(domain_.segments_max(), std::span(&byte, 1));
  EXPECT_TRUE(Buffer::borrow(domain_, most));
}

TEST_F(BufferTest, TheDomainKnowsWhoIsLeft) {
  auto buffer = Buffer::allocate(domain_, 1).value();
  const auto refused = domain_.close();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, Status::bad_state);
  EXPECT_TRUE(buffer->close());
  EXPECT_TRUE(buffer->close());
  EXPECT_TRUE(domain_.close());
  EXPECT_EQ(Buffer::allocate(domain_, 1).error().status, Status::bad_state);
}

TEST_F(BufferTest, OutlivesTheDomainsHandle) {
  auto buffer = [] {
    Domain domain = Domain::open().value();
    return Buffer::allocate(domain, 16).value();
  }();
  EXPECT_EQ(buffer->write(0, std::as_bytes(std::span("x", 1))), 1U);
}

TEST(DomainTest, SettingsAreChecked) {
  EXPECT_TRUE(Domain::open({.engine = {{"ack_delay", "50"}}}));
  EXPECT_FALSE(Domain::open({.engine = {{"no_such_setting", "1"}}}));
  EXPECT_FALSE(Domain::open({.engine = {{"ack_delay", "soon"}}}));
}

// A callback that is held back until another thread has begun to destroy its buffer.
class BufferLife : public BufferTest {
 protected:
  // Waits long enough for the other thread to get from `destroys_` into the destructor.
  void let_destruction_begin() {
    destroys_.wait(false);
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  }
  void destroy(std::unique_ptr<Buffer>& buffer) {
    destroys_ = true;
    destroys_.notify_all();
    buffer.reset();
  }
  TransferMachine& machine() {
    machines_.push_back(std::make_unique<TransferMachine>(domain_));
    EXPECT_TRUE(machines_.back()->start_and_wait("0@lo:*:34:*"));
    return *machines_.back();
  }

  std::atomic<bool> destroys_{false};
  std::vector<std::unique_ptr<TransferMachine>> machines_;
};

TEST_F(BufferLife, DestructionWaitsForTheFinalCallbackOnAnotherThread) {
  TransferMachine& one = machine();
  std::atomic<bool> has_returned{false};
  std::latch begun(1);
  auto buffer = Buffer::allocate(domain_, 10).value();
  buffer->set_callback([&](const BufferEvent& event) {
    EXPECT_FALSE(event.buffer.is_queued());
    begun.count_down();
    let_destruction_begin();
    EXPECT_EQ(event.buffer.size(), 10U);
    has_returned = true;
  });
  ASSERT_EQ(one.add(*buffer, PassiveReceive{}), Status::ok);
  one.cancel(*buffer);
  begun.wait();
  destroy(buffer);
  EXPECT_TRUE(has_returned);
}

TEST_F(BufferLife, ItWaitsThoughTheCallbackDestroysAnotherOne) {
  TransferMachine& one = machine();
  std::atomic<bool> has_returned{false};
  std::latch begun(1);
  auto inner = Buffer::allocate(domain_, 10).value(), buffer = Buffer::allocate(domain_, 10).value();
  inner->set_callback([](const BufferEvent&) {});
  buffer->set_callback([&](const BufferEvent&) {
    inner.reset();
    begun.count_down();
    let_destruction_begin();
    has_returned = true;
  });
  ASSERT_EQ(one.add(*inner, PassiveReceive{}), Status::ok);
  ASSERT_EQ(one.add(*buffer, PassiveReceive{}), Status::ok);
  one.cancel(*buffer);
  begun.wait();
  destroy(buffer);
  EXPECT_TRUE(has_returned);
}

TEST_F(BufferLife, ItWaitsForTheCallbacksOfTwoMachines) {
  TransferMachine &one = machine(), &two = machine();
  std::atomic<int> returned{0};
  std::latch begun(2);
  auto buffer = Buffer::allocate(domain_, 10).value();
  std::atomic<bool> is_first{true};
  buffer->set_callback([&](const BufferEvent& event) {
    if (is_first.exchange(false)) {
      EXPECT_EQ(two.add(event.buffer, PassiveReceive{}), Status::ok);
      two.cancel(event.buffer);
    }
    begun.arrive_and_wait();
    let_destruction_begin();
    ++returned;
  });
  ASSERT_EQ(one.add(*buffer, PassiveReceive{}), Status::ok);
  one.cancel(*buffer);
  begun.wait();
  destroy(buffer);
  EXPECT_EQ(returned, 2);
}

TEST(BufferLimits, OfTheDomainAreKept) {
  Domain motr = Domain::open({.limits = BufferLimits::motr()}).value();
  EXPECT_EQ(motr.buffer_size_max(), 1u << 20);
  EXPECT_EQ(motr.segment_size_max(), 4096u);
  EXPECT_EQ(motr.segments_max(), 256u);
  const auto largest = Buffer::allocate(motr, 1u << 20).value();
  EXPECT_EQ(largest->segment_count(), 256u);
  EXPECT_EQ(largest->segment(255).size(), 4096u);
  EXPECT_EQ(Buffer::allocate(motr, 5000).value()->segment(1).size(), 904u);
  EXPECT_EQ(Buffer::allocate(motr, (1u << 20) + 1).error().status, Status::too_big);
  std::vector<std::byte> memory(4097);
  EXPECT_EQ(Buffer::borrow(motr, memory).error().status, Status::too_big) << "a segment";
  const std::vector<std::span<std::byte>> pieces(257, std::span(memory).first(1));
  EXPECT_EQ(Buffer::borrow(motr, pieces).error().status, Status::too_big) << "too many";
  for (const BufferLimits& bad : {BufferLimits{.buffer_bytes = 0}, BufferLimits{.segments = 1025}})
    EXPECT_EQ(Domain::open({.limits = bad}).error().status, Status::invalid);
}

}  // namespace
}  // namespace fairlead::net
