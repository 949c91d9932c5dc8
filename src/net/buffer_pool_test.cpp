// Buffer pools (the subjects of Motr's tests "buffer pool" and "net_prov"): alone, with transfer machines over an
// engine of this process, and over a fake one.

#include <fairlead/net/buffer_pool.hpp>

#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "net/machine_for_tests.hpp"

namespace fairlead::net {
namespace {

class BufferPoolTest : public ::testing::Test {
 protected:
  BufferPool pool(std::size_t buffers, BufferPoolSettings settings = {.buffer_size = 64}) {
    auto made = BufferPool::create(domain_, std::move(settings)).value();
    EXPECT_EQ(made.provision(buffers).value(), buffers);
    return made;
  }

  Domain domain_ = Domain::open().value();
};

TEST_F(BufferPoolTest, Init) {
  EXPECT_EQ(BufferPool::create(domain_, {.buffer_size = 0}).error().status, Status::invalid);
  EXPECT_EQ(BufferPool::create(domain_, {.buffer_size = domain_.buffer_size_max() + 1}).error().status,
            Status::too_big);
  EXPECT_EQ(BufferPool::create(domain_, {.colours = kColoursMax + 1}).error().status, Status::invalid);
  const auto empty = BufferPool::create(domain_).value();
  EXPECT_EQ(empty.size(), 0u);
  EXPECT_EQ(empty.free_count(), 0u);
}

TEST_F(BufferPoolTest, NoneIsMadeInAClosedDomain) {
  ASSERT_TRUE(domain_.close());
  EXPECT_EQ(BufferPool::create(domain_).error().status, Status::bad_state);
}

TEST_F(BufferPoolTest, GetAndPut) {
  auto one = pool(3), other = pool(1);
  std::vector<Buffer*> taken;
  while (Buffer* const buffer = one.get()) taken.push_back(buffer);
  EXPECT_EQ(std::set(taken.begin(), taken.end()).size(), 3u);
  EXPECT_EQ(one.free_count(), 0u);
  EXPECT_EQ(one.size(), 3u);
  EXPECT_EQ(taken[0]->size(), 64u);
  EXPECT_EQ(other.put(*taken[0]), Status::invalid) << "of another pool";
  EXPECT_EQ(one.put(*Buffer::allocate(domain_, 64).value()), Status::invalid) << "of none";
  EXPECT_EQ(one.put(*taken[0], 0), Status::invalid) << "no such colour";
  EXPECT_EQ(one.put(*taken[0]), Status::ok);
  EXPECT_EQ(one.put(*taken[0]), Status::bad_state) << "it is there";
  EXPECT_EQ(one.free_count(), 1u);
}

TEST_F(BufferPoolTest, GetAndPutWithColour) {
  auto pool = this->pool(3, {.buffer_size = 64, .colours = 2});
  Buffer* const a = pool.get();
  Buffer* const b = pool.get();
  Buffer* const c = pool.get();
  ASSERT_EQ(pool.put(*a, 0), Status::ok);
  ASSERT_EQ(pool.put(*b, 1), Status::ok);
  ASSERT_EQ(pool.put(*c, 0), Status::ok);
  EXPECT_EQ(pool.get(0), c) << "the warmest";
  EXPECT_EQ(pool.get(1), b);
  EXPECT_EQ(pool.get(1), a) << "another colour's, rather than none";
}

TEST_F(BufferPoolTest, Thresholds) {
  int low = 0, filled = 0;
  auto pool = this->pool(
      3, {.buffer_size = 64, .threshold = 2, .on_below_threshold = [&] { ++low; }, .on_not_empty = [&] { ++filled; }});
  EXPECT_EQ(std::pair(low, filled), std::pair(0, 1));
  Buffer* const a = pool.get();
  EXPECT_EQ(low, 0);
  Buffer* const b = pool.get();
  Buffer* const c = pool.get();
  EXPECT_EQ(low, 1) << "once, however low";
  ASSERT_EQ(pool.put(*a), Status::ok);
  ASSERT_EQ(pool.put(*b), Status::ok);
  EXPECT_EQ(filled, 2);
  EXPECT_EQ(pool.get(), a);
  EXPECT_EQ(low, 2);
  ASSERT_EQ(pool.put(*a), Status::ok);
  ASSERT_EQ(pool.put(*c), Status::ok);
}

TEST_F(BufferPoolTest, GrowAndPrune) {
  auto pool = this->pool(2);
  EXPECT_FALSE(pool.prune()) << "no more than the threshold";
  EXPECT_EQ(pool.provision(2).value(), 2u);
  EXPECT_EQ(pool.size(), 4u);
  EXPECT_TRUE(pool.prune());
  EXPECT_TRUE(pool.prune());
  EXPECT_FALSE(pool.prune());
  EXPECT_EQ(pool.size(), 2u);
  EXPECT_EQ(pool.free_count(), 2u);
}

TEST_F(BufferPoolTest, TenThreads) {
  auto pool = this->pool(16, {.buffer_size = 64, .colours = 4});
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t thread = 0; thread < 10; ++thread) {
      threads.emplace_back([&, thread] {
        for (int i = 0; i < 2000; ++i) {
          Buffer* const buffer = pool.get(thread % 5);
          if (buffer == nullptr) continue;
          ASSERT_EQ(std::exchange(buffer->segment(0)[0], std::byte{1}), std::byte{0}) << "nobody else has it";
          buffer->segment(0)[0] = std::byte{0};
          ASSERT_EQ(pool.put(*buffer, thread % 4), Status::ok);
        }
      });
    }
  }
  EXPECT_EQ(pool.free_count(), 16u);
}

TEST_F(BufferPoolTest, Fini) {
  {
    auto pool = this->pool(2);
    EXPECT_EQ(domain_.close().error().status, Status::bad_state);
  }
  EXPECT_TRUE(domain_.close());
}

// Uses a domain of its own, because the dying process is a forked one.
TEST_F(BufferPoolTest, AnExceptionThatLeavesACallbackEndsTheProcess) {
  const auto take_the_last = [] {
    const Domain domain = Domain::open().value();
    const BufferPoolSettings throwing{.buffer_size = 64, .threshold = 1, .on_below_threshold = [] { throw 1; }};
    auto pool = BufferPool::create(domain, throwing).value();
    if (pool.provision(1)) (void)pool.get();
  };
  EXPECT_DEATH(try { take_the_last(); } catch (int){}, "");
}

// A machine that receives into a pool, and one that sends to it.
class ProvisionTest : public BufferPoolTest {
 protected:
  ProvisionTest() {
    EXPECT_TRUE(sender_.deliver_synchronously());
    EXPECT_TRUE(sender_.start_and_wait("0@lo:20480:34:1"));
    EXPECT_EQ(out_->set_callback([](const BufferEvent&) {}), Status::ok);
  }
  std::unique_ptr<TransferMachine> receiver(const BufferPool& pool, Provision provision) {
    auto machine = std::make_unique<TransferMachine>(domain_);
    EXPECT_TRUE(machine->deliver_synchronously());
    EXPECT_TRUE(machine->attach(pool, std::move(provision)));
    EXPECT_TRUE(machine->start_and_wait("0@lo:20480:34:*"));
    return machine;
  }
  void send(const TransferMachine& to) {
    const EndPoint there = sender_.create_end_point(to.end_point().address()).value();
    EXPECT_EQ(sender_.add(*out_, MessageSend{.to = there}), Status::ok);
    EXPECT_EQ(sender_.deliver_all(), 1u);
  }
  /// Records the events of the pool's buffers and keeps the buffers.
  BufferCallback keeping() {
    return [this](const BufferEvent& event) {
      statuses_.push_back(event.status);
      if (event.status == Status::ok && event.is_final) kept_.push_back(&event.buffer);
    };
  }

  TransferMachine sender_{domain_};
  std::unique_ptr<Buffer> out_ = Buffer::allocate(domain_, 10).value();
  std::vector<Status> statuses_;
  std::vector<Buffer*> kept_;
};

TEST_F(ProvisionTest, AttachSaysWhatIsWrong) {
  const auto pool = this->pool(1);
  TransferMachine machine(domain_);
  EXPECT_EQ(machine.set_receive_length(3), Status::bad_state) << "no pool";
  EXPECT_EQ(machine.attach(pool, {}).error().status, Status::invalid);
  EXPECT_EQ(machine.attach(pool, {.on_event = keeping(), .size_min = 65}).error().status, Status::invalid);
  EXPECT_EQ(machine.attach(pool, {.on_event = keeping(), .messages_max = 0}).error().status, Status::invalid);
  EXPECT_EQ(machine.attach(pool, {.on_event = keeping(), .colour = 0}).error().status, Status::invalid);
  ASSERT_TRUE(machine.attach(pool, {.on_event = keeping()}));
  EXPECT_EQ(machine.set_receive_colour(0), Status::invalid) << "the pool has none";
  EXPECT_EQ(machine.set_receive_colour(kAnyColour), Status::ok);
  Domain other = Domain::open().value();
  TransferMachine foreign(other);
  EXPECT_EQ(foreign.attach(pool, {.on_event = keeping()}).error().status, Status::invalid);
  EXPECT_EQ(sender_.attach(pool, {.on_event = keeping()}).error().status, Status::bad_state);
}

TEST_F(ProvisionTest, InitialLengthIsTwoAndCanBeSet) {
  auto pool = this->pool(5);
  const auto machine = receiver(pool, {.on_event = keeping()});
  EXPECT_EQ(pool.free_count(), 3u);
  EXPECT_EQ(machine->set_receive_length(4), Status::ok);
  EXPECT_EQ(pool.free_count(), 1u);
  EXPECT_EQ(machine->receive_deficit(), 0u);
}

TEST_F(ProvisionTest, TheDeficitIsCountedAndMadeUpForWhenOneComesBack) {
  auto pool = this->pool(2);
  const auto machine = receiver(pool, {.on_event = keeping(), .length = 2});
  EXPECT_EQ(machine->receive_deficit(), 0u);
  send(*machine);
  EXPECT_EQ(machine->receive_deficit(), 1u);
  EXPECT_EQ(machine->deliver_all(), 1u);
  EXPECT_EQ(pool.put(*kept_.at(0)), Status::ok);
  EXPECT_EQ(machine->receive_deficit(), 0u);
  EXPECT_EQ(pool.free_count(), 0u);
  EXPECT_EQ(pool.provision(1).value(), 1u);
  EXPECT_EQ(machine->set_receive_length(3), Status::ok);
  EXPECT_EQ(machine->receive_deficit(), 0u) << "what was made later counts, too";
}

TEST_F(ProvisionTest, TwoMachinesShareThePoolByColours) {
  auto pool = this->pool(4, {.buffer_size = 64, .colours = 2});
  std::vector<Buffer*> red, blue;
  for (int i = 0; i < 2; ++i) red.push_back(pool.get());
  for (int i = 0; i < 2; ++i) blue.push_back(pool.get());
  for (Buffer* const one : blue) ASSERT_EQ(pool.put(*one, 1), Status::ok);
  for (Buffer* const one : red) ASSERT_EQ(pool.put(*one, 0), Status::ok);
  std::vector<Buffer*> to_red, to_blue;
  const auto into = [](std::vector<Buffer*>& all) {
    return [&all](const BufferEvent& event) { all.push_back(&event.buffer); };
  };
  const auto machine_red = receiver(pool, {.on_event = into(to_red), .length = 1, .colour = 0});
  const auto machine_blue = receiver(pool, {.on_event = into(to_blue), .length = 1, .colour = 1});
  for (int i = 0; i < 2; ++i) {
    send(*machine_red);
    send(*machine_blue);
  }
  EXPECT_EQ(machine_red->deliver_all(), 2u);
  EXPECT_EQ(machine_blue->deliver_all(), 2u);
  EXPECT_EQ(std::set(to_red.begin(), to_red.end()), std::set(red.begin(), red.end()));
  EXPECT_EQ(std::set(to_blue.begin(), to_blue.end()), std::set(blue.begin(), blue.end()));
  EXPECT_EQ(machine_red->receive_deficit() + machine_blue->receive_deficit(), 2u);
  EXPECT_EQ(machine_red->set_receive_colour(1), Status::ok);
  ASSERT_EQ(pool.put(*to_blue.at(0), 1), Status::ok);
  EXPECT_EQ(machine_red->receive_deficit() + machine_blue->receive_deficit(), 1u) << "one of them has got it";
}

TEST_F(ProvisionTest, TheEngineTakesMoreThanTheLengthWhenMessagesCome) {
  auto pool = this->pool(10);
  const auto machine = receiver(pool, {.on_event = keeping(), .length = 1});
  for (int i = 0; i < 11; ++i) send(*machine);
  EXPECT_EQ(machine->deliver_all(), 10u);
  EXPECT_EQ(machine->messages_dropped(), 1u);
  EXPECT_EQ(kept_.size(), 10u);
  for (Buffer* const one : kept_) EXPECT_EQ(pool.put(*one), Status::ok);
  EXPECT_EQ(pool.free_count(), 9u) << "one is posted";
}

TEST_F(ProvisionTest, TheOwnerIsToldWhenTheEngineHasTakenMany) {
  int low = 0;
  auto pool = this->pool(4, {.buffer_size = 64, .threshold = 2, .on_below_threshold = [&] { ++low; }});
  const auto machine = receiver(pool, {.on_event = keeping(), .length = 1});
  send(*machine);
  EXPECT_EQ(machine->deliver_all(), 1u);
  EXPECT_EQ(low, 0);
  send(*machine);
  EXPECT_EQ(machine->deliver_all(), 1u);
  EXPECT_EQ(low, 1);
}

TEST_F(ProvisionTest, AHalfFilledBufferMayBeCancelledAndGoesBack) {
  auto pool = this->pool(3);
  Buffer* seen = nullptr;
  const auto machine = receiver(pool, {.on_event =
                                           [&](const BufferEvent& event) {
                                             seen = &event.buffer;
                                             statuses_.push_back(event.status);
                                           },
                                       .size_min = 10,
                                       .messages_max = 6,
                                       .length = 1});
  send(*machine);
  EXPECT_EQ(machine->deliver_all(), 1u);
  ASSERT_NE(seen, nullptr);
  EXPECT_TRUE(seen->is_queued());
  EXPECT_EQ(pool.put(*seen), Status::bad_state);
  EXPECT_TRUE(machine->cancel(*seen));
  EXPECT_EQ(machine->deliver_all(), 1u);
  EXPECT_EQ(statuses_.back(), Status::canceled);
  EXPECT_EQ(pool.free_count(), 2u);
  const QueueStatistics figures = machine->statistics().of(QueueKind::message_receive);
  EXPECT_EQ(figures.adds, 1u);
  EXPECT_EQ(figures.successes + figures.failures, 2u);
}

TEST_F(ProvisionTest, StopHandsBackWhatHoldsNoMessage) {
  for (const StopMode mode : {StopMode::drain, StopMode::abort}) {
    auto pool = this->pool(8);
    kept_.clear();
    statuses_.clear();
    const auto machine = receiver(pool, {.on_event = keeping(), .length = 5});
    send(*machine);
    ASSERT_TRUE(machine->stop_and_wait(mode));
    EXPECT_EQ(kept_.size(), 1u) << "it came before the stop";
    EXPECT_EQ(statuses_.size(), 6u);
    EXPECT_EQ(pool.free_count(), 7u);
    EXPECT_EQ(pool.put(*kept_.at(0)), Status::ok);
    EXPECT_EQ(machine->receive_deficit(), 0u);
    EXPECT_EQ(machine->set_receive_length(1), Status::bad_state);
  }
}

TEST_F(ProvisionTest, ThePoolOutlivesItsHandleAsLongAsAMachineNeedsIt) {
  std::unique_ptr<TransferMachine> machine;
  {
    auto pool = this->pool(3);
    machine = receiver(pool, {.on_event = keeping()});
  }
  send(*machine);
  EXPECT_EQ(machine->deliver_all(), 1u);
  EXPECT_EQ(kept_.size(), 1u);
  machine.reset();
  out_.reset();
  ASSERT_TRUE(sender_.stop_and_wait(StopMode::abort));
  ASSERT_TRUE(sender_.close());
  EXPECT_TRUE(domain_.close());
}

TEST_F(ProvisionTest, ABufferOfThePoolMayBeUsedForAnything) {
  auto pool = this->pool(3);
  const auto machine = receiver(pool, {.on_event = keeping()});
  Buffer* const mine = pool.get();
  ASSERT_NE(mine, nullptr);
  int sent = 0;
  ASSERT_EQ(mine->set_callback([&](const BufferEvent&) { ++sent; }), Status::ok);
  const EndPoint there = sender_.create_end_point(machine->end_point().address()).value();
  ASSERT_EQ(sender_.add(*mine, MessageSend{.to = there}), Status::ok);
  EXPECT_EQ(pool.put(*mine), Status::bad_state) << "it is queued";
  EXPECT_EQ(sender_.deliver_all(), 1u);
  EXPECT_EQ(sent, 1);
  EXPECT_EQ(pool.put(*mine), Status::ok);
  EXPECT_EQ(machine->deliver_all(), 1u);
  for (int i = 0; i < 2; ++i) send(*machine);
  EXPECT_EQ(machine->deliver_all(), 2u);
  EXPECT_EQ(sent, 1) << "what it receives for the machine is told to the machine's callback";
  EXPECT_EQ(kept_.back(), mine);
}

TEST_F(ProvisionTest, ABufferOfThePoolKeepsItsOwnCallback) {
  auto pool = this->pool(1);
  int own = 0;
  Buffer* const mine = pool.get();
  ASSERT_EQ(mine->set_callback([&](const BufferEvent&) { ++own; }), Status::ok);
  ASSERT_EQ(pool.put(*mine), Status::ok);
  const auto machine = receiver(pool, {.on_event = keeping()});
  send(*machine);
  EXPECT_EQ(machine->deliver_all(), 1u);
  EXPECT_EQ(kept_.back(), mine);
  EXPECT_EQ(own, 0) << "what it receives for the machine is told to the machine's callback";
  ASSERT_EQ(machine->add(*mine, MessageReceive{}), Status::ok);
  send(*machine);
  EXPECT_EQ(machine->deliver_all(), 1u);
  EXPECT_EQ(own, 1);
}

class ProvisionByAFakeTest : public MachineTest {};

TEST_F(ProvisionByAFakeTest, EachFinalEventBringsTheNextBuffer) {
  auto pool = BufferPool::create(fake_.domain, {.buffer_size = 64}).value();
  ASSERT_EQ(pool.provision(3).value(), 3u);
  ASSERT_TRUE(machine_.attach(pool, {.on_event = record_.callback()}));
  start_synchronous();
  EXPECT_EQ(fake_.core->submitted().size(), 2u);
  EXPECT_EQ(fake_.core->reserved(), 3u);
  fake_.core->complete(Status::ok, 10);
  EXPECT_EQ(fake_.core->submitted().size(), 2u);
  EXPECT_EQ(machine_.receive_deficit(), 0u);
  fake_.core->complete(Status::ok, 10);
  EXPECT_EQ(machine_.receive_deficit(), 1u);
  EXPECT_EQ(deliver(), 2u);
  EXPECT_EQ(record_.entries().at(1).length, 10u);
  EXPECT_EQ(of(QueueKind::message_receive).adds, 2u);
  ASSERT_TRUE(machine_.stop_and_wait(StopMode::drain));
  EXPECT_EQ(record_.entries().back().status, Status::canceled);
  EXPECT_EQ(pool.free_count(), 1u) << "the others are the test's";
}

TEST_F(ProvisionByAFakeTest, WithoutRoomForEventsTheEngineTakesNone) {
  auto pool = BufferPool::create(fake_.domain, {.buffer_size = 64}).value();
  ASSERT_EQ(pool.provision(1).value(), 1u);
  ASSERT_TRUE(machine_.attach(pool, {.on_event = record_.callback()}));
  fake_.core->fail_next(Status::no_memory);
  start_synchronous();
  EXPECT_TRUE(fake_.core->submitted().empty());
  EXPECT_EQ(pool.free_count(), 1u);
  EXPECT_EQ(machine_.receive_deficit(), 2u);
  EXPECT_EQ(machine_.set_receive_length(1), Status::ok) << "it is tried again";
  EXPECT_EQ(fake_.core->submitted().size(), 1u);
  EXPECT_EQ(machine_.receive_deficit(), 0u);
}

}  // namespace
}  // namespace fairlead::net
