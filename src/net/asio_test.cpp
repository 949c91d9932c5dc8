// Cancellation through slots, with the standalone Asio: Debian 12's Boost is too old for it.

#define ASIO_STANDALONE

#include <gtest/gtest.h>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/bind_executor.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/io_context.hpp>
#include <chrono>
#include <optional>

#include <fairlead/net.hpp>
#include <fairlead/net/asio.hpp>

namespace fairlead::net {
namespace {

class AsioTest : public testing::Test {
 protected:
  AsioTest() {
    EXPECT_TRUE(machine_.deliver_synchronously());
    EXPECT_TRUE(machine_.start_and_wait("0@lo:20480:34:1"));
    delivery_.emplace(context_, machine_);
  }
  void receive() {
    const auto end = [this](const Outcome& outcome) {
      ended_ = outcome.status;
      delivery_.reset();
    };
    const auto cancelled = asio::bind_cancellation_slot(signal_.slot(), end);
    buffer_->async_add(machine_, MessageReceive{}, asio::bind_executor(context_, cancelled));
  }

  asio::io_context context_;
  asio::cancellation_signal signal_;
  Domain domain_ = *Domain::open();
  TransferMachine machine_{domain_};
  std::optional<AsioDelivery> delivery_;
  std::optional<AsioBuffer> buffer_{std::in_place, *Buffer::allocate(domain_, 64)};
  std::optional<Status> ended_;
};

TEST_F(AsioTest, ATerminalCancellationEndsTheOperation) {
  receive();
  context_.poll();
  EXPECT_FALSE(ended_);
  signal_.emit(asio::cancellation_type::total);
  context_.poll();
  EXPECT_FALSE(ended_) << "not the kind that it is for";
  signal_.emit(asio::cancellation_type::terminal);
  context_.run_for(std::chrono::seconds(10));
  EXPECT_EQ(ended_, Status::canceled);
  signal_.emit(asio::cancellation_type::terminal);  // nothing is left to cancel
}

// The first operation has ended, but its handler has not run yet.
TEST_F(AsioTest, ALateCancellationSparesTheNextOperation) {
  asio::io_context slow;
  std::optional<Status> first, second;
  const auto end_first = [&](const Outcome& outcome) { first = outcome.status; };
  const auto end_second = [&](const Outcome& outcome) { second = outcome.status; };
  buffer_->async_add(machine_, MessageReceive{},
                     asio::bind_executor(slow, asio::bind_cancellation_slot(signal_.slot(), end_first)));
  ASSERT_TRUE(machine_.cancel(**buffer_));
  while ((*buffer_)->is_queued()) context_.run_one();
  buffer_->async_add(machine_, PassiveReceive{}, asio::bind_executor(slow, end_second));
  ASSERT_TRUE((*buffer_)->is_queued());
  signal_.emit(asio::cancellation_type::terminal);
  context_.poll();
  EXPECT_TRUE((*buffer_)->is_queued());
  slow.poll();
  EXPECT_EQ(first, Status::canceled);
  EXPECT_FALSE(second);
  ASSERT_TRUE(machine_.cancel(**buffer_));
  while ((*buffer_)->is_queued()) context_.run_one();
  slow.restart();
  slow.poll();
  EXPECT_EQ(second, Status::canceled);
  delivery_.reset();
}

TEST_F(AsioTest, ACancellationAfterTheBufferHasGoneDoesNothing) {
  receive();
  buffer_.reset();
  signal_.emit(asio::cancellation_type::terminal);
  context_.run_for(std::chrono::seconds(10));
  EXPECT_EQ(ended_, Status::canceled);
}

// In a callback the buffer goes before its final event is told. A cancellation in between would read freed memory.
TEST_F(AsioTest, ACancellationBetweenTheBufferAndItsFinalEventDoesNothing) {
  const auto other = *Buffer::allocate(domain_, 64);
  const auto destroy = [&](const BufferEvent&) {
    buffer_.reset();
    signal_.emit(asio::cancellation_type::terminal);
    EXPECT_FALSE(ended_);
  };
  receive();
  ASSERT_EQ(other->set_callback(destroy), Status::ok);
  ASSERT_EQ(machine_.add(*other, MessageReceive{}), Status::ok);
  ASSERT_TRUE(machine_.cancel(*other));
  context_.run_for(std::chrono::seconds(10));
  EXPECT_EQ(ended_, Status::canceled);
}

}  // namespace
}  // namespace fairlead::net
