// The adaptor for coroutines, over an engine of this process, on one thread.

#include <fairlead/net/coroutine.hpp>

#include <gtest/gtest.h>

#include <coroutine>
#include <optional>
#include <string>
#include <vector>

#include <fairlead/net.hpp>

namespace fairlead::net {
namespace {

/// A coroutine that its caller destroys.
struct Owned {
  struct promise_type {
    Owned get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_always final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }
  };
  std::coroutine_handle<> handle;
};

class CoroutineTest : public ::testing::Test {
 protected:
  CoroutineTest() {
    for (TransferMachine* const machine : {&near_, &far_}) EXPECT_TRUE(machine->deliver_synchronously());
    EXPECT_TRUE(near_.start_and_wait("0@lo:20480:34:1"));
    EXPECT_TRUE(far_.start_and_wait("0@lo:20480:34:2"));
  }
  std::unique_ptr<AwaitedBuffer> buffer() {
    return std::make_unique<AwaitedBuffer>(Buffer::allocate(domain_, 64).value());
  }
  /// Delivers until nothing happens any more.
  void deliver() {
    while (near_.deliver_all().value() + far_.deliver_all().value() > 0) continue;
  }
  EndPoint to(std::string_view address) { return near_.create_end_point(address).value(); }

  /// Returns each message until its receive is cancelled; the buffer ends with the coroutine.
  Background echo(std::unique_ptr<AwaitedBuffer> own) {
    for (;;) {
      const Outcome got = co_await own->add(far_, MessageReceive{});
      last_ = got.status;
      if (got.status != Status::ok) break;
      const Outcome sent = co_await own->add(far_, MessageSend{.to = got.sender, .length = got.length});
      EXPECT_EQ(sent.status, Status::ok);
    }
    ++ended_;
  }
  Background listen(AwaitedBuffer& own, std::size_t count) {
    while (count-- > 0) {
      const Outcome got = co_await own.add(near_, MessageReceive{});
      heard_.push_back(got.length);
    }
  }
  Background send(AwaitedBuffer& own, Destination there, std::uint64_t length) {
    last_ = (co_await own.add(near_, MessageSend{.to = there, .length = length})).status;
    ++ended_;
  }

  Owned hear_one(std::unique_ptr<AwaitedBuffer> own) {
    heard_.push_back((co_await own->add(near_, MessageReceive{})).length);
  }

  Domain domain_ = Domain::open().value();
  TransferMachine near_{domain_}, far_{domain_};
  std::vector<std::uint64_t> heard_;
  Status last_ = Status::ok;
  int ended_ = 0;
};

TEST_F(CoroutineTest, AServerIsALoop) {
  echo(buffer());
  const auto inbox = buffer(), outbox = buffer();
  listen(*inbox, 3);
  for (const std::uint64_t length : {1U, 30U, 64U}) {
    send(*outbox, to("0@lo:20480:34:2"), length);
    deliver();
  }
  EXPECT_EQ(heard_, (std::vector<std::uint64_t>{1, 30, 64}));
  EXPECT_EQ(ended_, 3);
  ASSERT_TRUE(far_.stop_and_wait(StopMode::abort));
  EXPECT_EQ(ended_, 4);
  EXPECT_EQ(last_, Status::canceled);
}

TEST_F(CoroutineTest, WhatIsRefusedGoesOnAtOnce) {
  const auto outbox = buffer();
  send(*outbox, Destination(), 1);
  EXPECT_EQ(ended_, 1);
  EXPECT_EQ(last_, Status::invalid);
}

TEST_F(CoroutineTest, AnAwaitedBufferThatIsDestroyedEndsItsOperation) {
  auto inbox = buffer();
  listen(*inbox, 1);
  inbox.reset();
  EXPECT_EQ(heard_.size(), 1U);
}

// The final event ends after the callback, when another buffer may lie at the same address.
TEST_F(CoroutineTest, AnAwaitedBufferMayBeDestroyedInACallback) {
  std::optional<AwaitedBuffer> inbox(std::in_place, Buffer::allocate(domain_, 64).value());
  listen(*inbox, 1);
  const auto out = Buffer::allocate(domain_, 64).value();
  ASSERT_EQ(out->set_callback([&](const BufferEvent&) { inbox.emplace(Buffer::allocate(domain_, 64).value()); }),
            Status::ok);
  ASSERT_EQ(near_.add(*out, MessageSend{.to = to("0@lo:20480:34:2")}), Status::ok);
  deliver();
  EXPECT_EQ(heard_.size(), 1U);
}

TEST_F(CoroutineTest, ACoroutineThatIsDestroyedWhileItWaitsDoesNotGoOn) {
  const Owned waiting = hear_one(buffer());
  waiting.handle.destroy();
  deliver();
  EXPECT_TRUE(heard_.empty());
}

TEST_F(CoroutineTest, ASecondOperationOfABufferIsRefusedAndTheFirstGoesOn) {
  const auto own = buffer();
  listen(*own, 1);
  send(*own, to("0@lo:20480:34:2"), 1);
  EXPECT_EQ(last_, Status::bad_state);
  EXPECT_TRUE(heard_.empty());
  ASSERT_TRUE(near_.cancel(**own));
  deliver();
  EXPECT_EQ(heard_.size(), 1U);
}

}  // namespace
}  // namespace fairlead::net
