// Cancellation through slots needs Boost.Asio 1.77 or later; otherwise there is nothing to test.

#include <boost/asio/version.hpp>

#if BOOST_ASIO_VERSION >= 101900

#include <gtest/gtest.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
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
    const auto cancelled = boost::asio::bind_cancellation_slot(signal_.slot(), end);
    buffer_->async_add(machine_, MessageReceive{}, boost::asio::bind_executor(context_, cancelled));
  }

  boost::asio::io_context context_;
  boost::asio::cancellation_signal signal_;
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
  signal_.emit(boost::asio::cancellation_type::total);
  context_.poll();
  EXPECT_FALSE(ended_) << "not the kind that it is for";
  signal_.emit(boost::asio::cancellation_type::terminal);
  context_.run_for(std::chrono::seconds(10));
  EXPECT_EQ(ended_, Status::canceled);
  signal_.emit(boost::asio::cancellation_type::terminal);  // nothing is left to cancel
}

TEST_F(AsioTest, ACancellationAfterTheBufferHasGoneDoesNothing) {
  receive();
  buffer_.reset();
  signal_.emit(boost::asio::cancellation_type::terminal);
  context_.run_for(std::chrono::seconds(10));
  EXPECT_EQ(ended_, Status::canceled);
}

}  // namespace
}  // namespace fairlead::net

#endif
