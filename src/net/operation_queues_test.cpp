// What add() accepts, the order of its checks, and that a refusal changes nothing.

#include <array>
#include <utility>

#include "net/machine_for_tests.hpp"
#include "net/passive_descriptor.hpp"

namespace fairlead::net {
namespace {

using std::chrono::hours;

BufferDescriptor descriptor_of(QueueKind kind, std::uint64_t size, std::string_view ip = "10.0.0.9") {
  return encode_descriptor({.owner = {base::SocketAddress::from_ip(ip, 1).value(), 34U << 12 | 5},
                            .kind = kind,
                            .epoch = 11,
                            .key = 12,
                            .size = size});
}

TEST_F(MachineTest, EachQueueMakesItsOperation) {
  start_synchronous();
  const EndPoint to = peer();
  std::vector<std::unique_ptr<Buffer>> buffers;
  buffers.reserve(6);
  for (int i = 0; i < 6; ++i) buffers.push_back(buffer(100));
  EXPECT_EQ(machine_.add(*buffers[0], MessageReceive{.size_min = 10, .messages_max = 3}), Status::ok);
  EXPECT_EQ(machine_.add(*buffers[1], MessageSend{.to = to, .length = 7}), Status::ok);
  EXPECT_EQ(machine_.add(*buffers[2], PassiveReceive{}), Status::ok);
  EXPECT_EQ(machine_.add(*buffers[3], PassiveSend{.length = 60}), Status::ok);
  EXPECT_EQ(machine_.add(*buffers[4], ActiveReceive{.descriptor = descriptor_of(QueueKind::passive_bulk_send, 90)}),
            Status::ok);
  EXPECT_EQ(machine_.add(*buffers[5],
                         ActiveSend{.descriptor = descriptor_of(QueueKind::passive_bulk_receive, 90), .length = 80}),
            Status::ok);

  const auto submitted = fake_.core->submitted();
  ASSERT_EQ(submitted.size(), 6U);
  const std::string kinds = "rseegp";
  const std::uint64_t lengths[] = {10, 7, 100, 60, 90, 80};
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(submitted[i].kind, kinds[i]);
    EXPECT_EQ(submitted[i].length, lengths[i]) << i;
    EXPECT_TRUE(buffers[i]->is_queued());
  }
  EXPECT_EQ(submitted[1].target.port, 34U << 12 | 5);
  EXPECT_EQ(submitted[4].key, 12U);
  EXPECT_EQ(fake_.core->reserved(), 3U + 5U);
  EXPECT_EQ(inspect(buffers[2]->descriptor())->size, 100U);
  EXPECT_EQ(inspect(buffers[3]->descriptor())->size, 60U);
  EXPECT_EQ(inspect(buffers[3]->descriptor())->kind, QueueKind::passive_bulk_send);
  EXPECT_EQ(inspect(buffers[3]->descriptor())->address, kAddress);
}

TEST_F(MachineTest, ManyAreAddedUpToTheFirstThatIsRefused) {
  start_synchronous();
  const EndPoint to = peer();
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<Buffer*> all;
  for (int i = 0; i < 40; ++i) all.push_back(buffers.emplace_back(buffer(100)).get());
  EXPECT_EQ(machine_.add(*all[35], PassiveReceive{}), Status::ok);
  const auto added = machine_.add(all, MessageSend{.to = to, .length = 7});
  EXPECT_EQ(added.count, 35U);
  EXPECT_EQ(added.status, Status::bad_state);
  EXPECT_EQ(fake_.core->reserved(), 36U);
  EXPECT_EQ(fake_.core->submitted().size(), 36U);
  EXPECT_EQ(fake_.core->submitted()[35].length, 7U);
  EXPECT_TRUE(all[34]->is_queued());
  EXPECT_FALSE(all[36]->is_queued());

  fake_.core->fail_next(Status::again);
  const std::span<Buffer* const> rest(all.begin() + 36, 4);
  EXPECT_EQ(machine_.add(rest, MessageSend{.to = to}).status, Status::again);
  EXPECT_FALSE(all[36]->is_queued());
  EXPECT_EQ(fake_.core->reserved(), 36U);
  EXPECT_EQ(machine_.add(rest, MessageSend{.to = EndPoint()}).status, Status::invalid);
  EXPECT_EQ(machine_.add(rest, MessageSend{.to = to}).count, 4U);
  for (int i = 0; i < 40; ++i) fake_.core->complete(Status::ok);
  EXPECT_EQ(machine_.deliver_all().value(), 40U);
  EXPECT_EQ(fake_.core->reserved(), 0U);
  EXPECT_EQ(machine_.statistics().of(QueueKind::message_send).bytes_total, 35U * 7 + 4U * 100);
}

TEST_F(MachineTest, ManyOfEachKindAreAddedUpToTheFirstThatIsRefused) {
  start_synchronous();
  std::array<std::unique_ptr<Buffer>, 4> buffers{buffer(), buffer(), buffer(), buffer()};
  const std::array<Buffer*, 3> all{buffers[0].get(), buffers[1].get(), buffers[2].get()};
  const auto cancel_all = [&] {
    for (Buffer* one : all) EXPECT_TRUE(machine_.cancel(*one));
    EXPECT_EQ(deliver(), all.size());
  };
  EXPECT_EQ(machine_.add(all, MessageReceive{.messages_max = 2}).count, 3U);
  EXPECT_EQ(of(QueueKind::message_receive).adds, 3U);
  cancel_all();
  EXPECT_EQ(machine_.add(all, PassiveReceive{}).count, 3U);
  EXPECT_NE(all[0]->descriptor(), all[1]->descriptor());
  cancel_all();
  const std::array<Buffer*, 3> twice{buffers[3].get(), buffers[3].get(), all[0]};
  const auto added = machine_.add(twice, PassiveSend{});
  EXPECT_EQ(added.count, 1U);
  EXPECT_EQ(added.status, Status::bad_state);
  EXPECT_FALSE(all[0]->is_queued());
  EXPECT_TRUE(machine_.cancel(*buffers[3]));
  EXPECT_EQ(deliver(), 1U);
}

TEST_F(MachineTest, ManyTransfersAreAddedEachWithItsDescriptor) {
  start_synchronous();
  std::array<std::unique_ptr<Buffer>, 3> passive{buffer(10), buffer(20), buffer(30)},
      active{buffer(), buffer(), buffer()};
  const std::array<Buffer*, 3> exposed{passive[0].get(), passive[1].get(), passive[2].get()};
  const std::array<Buffer*, 3> all{active[0].get(), active[1].get(), active[2].get()};
  EXPECT_EQ(machine_.add(exposed, PassiveSend{}).count, 3U);
  std::array<ActiveReceive, 3> gets;
  std::array<ActiveSend, 3> puts;
  for (std::size_t i = 0; i < 3; ++i) gets[i].descriptor = passive[i]->descriptor();
  EXPECT_EQ(machine_.add(all, gets).count, 3U);
  const auto submitted = fake_.core->submitted();
  ASSERT_EQ(submitted.size(), 6U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(submitted[3 + i].length, 10 * (i + 1)) << "the descriptor's size";
  for (Buffer* one : all) EXPECT_TRUE(machine_.cancel(*one));
  EXPECT_EQ(deliver(), 3U);
  for (Buffer* one : exposed) EXPECT_TRUE(machine_.cancel(*one));
  EXPECT_EQ(deliver(), 3U);

  EXPECT_EQ(machine_.add(exposed, PassiveReceive{}).count, 3U);
  for (std::size_t i = 0; i < 3; ++i) puts[i] = {.descriptor = passive[i]->descriptor(), .length = 10};
  puts[1].length = 21;
  const auto added = machine_.add(all, puts);
  EXPECT_EQ(added.count, 1U);
  EXPECT_EQ(added.status, Status::too_big);
  EXPECT_EQ(TransferMachine::explain_last().status, Status::too_big);
  EXPECT_FALSE(all[1]->is_queued());
  EXPECT_FALSE(all[2]->is_queued());
  EXPECT_EQ(machine_.add(std::span(all).subspan(1), puts).status, Status::invalid) << "not as many";
  EXPECT_EQ(of(QueueKind::active_bulk_send).adds, 1U);
  EXPECT_EQ(of(QueueKind::active_bulk_receive).adds, 3U);
}

// A deadline among many is in force, too: the machine wakes for it.
TEST_F(MachineTest, TheEarliestDeadlineOfManyWakesTheMachine) {
  start();
  std::array<std::unique_ptr<Buffer>, 2> passive{buffer(10), buffer(10)}, active{buffer(), buffer()};
  const std::array<Buffer*, 2> exposed{passive[0].get(), passive[1].get()}, all{active[0].get(), active[1].get()};
  EXPECT_EQ(machine_.add(exposed, PassiveReceive{}).count, 2U);
  const Instant soon = Instant::clock::now() + std::chrono::milliseconds(100);
  const std::array<ActiveSend, 2> puts{
      {{.descriptor = passive[0]->descriptor(), .length = 10, .deadline = soon},
       {.descriptor = passive[1]->descriptor(), .length = 10, .deadline = soon + std::chrono::hours(1)}}};
  ASSERT_EQ(machine_.add(all, puts).count, 2U);
  EXPECT_EQ(record_.wait_for(1).at(0).status, Status::timed_out);
}

TEST_F(MachineTest, AnEventFindsWhatItsBufferBelongsTo) {
  start_synchronous();
  const auto one = buffer();
  EXPECT_EQ(one->user(), nullptr);
  int owner = 0;
  one->set_user(&owner);
  void* seen = nullptr;
  EXPECT_EQ(one->set_callback([&](const BufferEvent& event) { seen = event.buffer.user(); }), Status::ok);
  EXPECT_EQ(machine_.add(*one, PassiveReceive{}), Status::ok);
  EXPECT_TRUE(machine_.cancel(*one));
  EXPECT_EQ(deliver(), 1U);
  EXPECT_EQ(seen, &owner);
}

TEST_F(MachineTest, NothingIsAddedUnlessStarted) {
  const auto one = buffer();
  EXPECT_EQ(machine_.add(*one, PassiveReceive{}), Status::bad_state);
  start();
  EXPECT_TRUE(machine_.stop_and_wait(StopMode::drain));
  EXPECT_EQ(machine_.add(*one, PassiveReceive{}), Status::bad_state);
  EXPECT_FALSE(machine_.cancel(*one));
}

TEST_F(MachineTest, BuffersOfOthersAndBusyOnesAreRefused) {
  start_synchronous();
  FakeDomain other;
  const auto stranger = Buffer::allocate(other.domain, 10).value();
  EXPECT_EQ(stranger->set_callback(record_.callback()), Status::ok);
  EXPECT_EQ(machine_.add(*stranger, PassiveReceive{}), Status::invalid);

  const auto mute = Buffer::allocate(fake_.domain, 10).value();
  EXPECT_EQ(mute->set_callback(QueueKind::message_send, record_.callback()), Status::ok);
  EXPECT_EQ(machine_.add(*mute, PassiveReceive{}), Status::invalid);

  const auto busy = buffer();
  EXPECT_EQ(machine_.add(*busy, PassiveReceive{}), Status::ok);
  EXPECT_EQ(machine_.add(*busy, PassiveReceive{}), Status::bad_state);
  EXPECT_EQ(busy->set_callback(record_.callback()), Status::bad_state);
  EXPECT_EQ(busy->close().error().status, Status::bad_state);

  const auto closed = buffer();
  EXPECT_TRUE(closed->close());
  EXPECT_EQ(machine_.add(*closed, PassiveReceive{}), Status::bad_state);
}

TEST_F(MachineTest, FieldsOutOfRangeAreRefused) {
  start_synchronous();
  const EndPoint to = peer();
  const auto one = buffer(100);
  EXPECT_EQ(machine_.add(*one, MessageReceive{.size_min = 0}), Status::invalid);
  EXPECT_EQ(machine_.add(*one, MessageReceive{.size_min = 101}), Status::invalid);
  EXPECT_EQ(machine_.add(*one, MessageReceive{.messages_max = 0}), Status::invalid);
  EXPECT_EQ(machine_.add(*one, MessageReceive{.messages_max = kMessagesInBufferMax + 1}), Status::invalid);
  EXPECT_EQ(machine_.add(*one, MessageSend{.to = to, .length = 0}), Status::invalid);
  EXPECT_EQ(machine_.add(*one, MessageSend{.to = to, .length = 101}), Status::invalid);
  EXPECT_EQ(machine_.add(*one, MessageSend{.to = EndPoint()}), Status::invalid);
  EXPECT_EQ(machine_.add(*one, PassiveSend{.length = 0}), Status::invalid);
  EXPECT_EQ(machine_.add(*one, PassiveSend{.length = 101}), Status::invalid);
  const BufferDescriptor writable = descriptor_of(QueueKind::passive_bulk_receive, 1000);
  EXPECT_EQ(machine_.add(*one, ActiveSend{.descriptor = writable, .length = 0}), Status::invalid);
  EXPECT_EQ(machine_.add(*one, ActiveSend{.descriptor = writable, .length = 101}), Status::invalid);
  EXPECT_TRUE(fake_.core->submitted().empty());
  EXPECT_EQ(fake_.core->reserved(), 0U);
}

TEST_F(MachineTest, EndPointsOfAnotherMachineAreRefused) {
  start_synchronous();
  TransferMachine other(fake_.domain);
  ASSERT_TRUE(other.start_and_wait("127.0.0.1@udp:20480:34:2"));
  const EndPoint foreign = other.create_end_point("10.0.0.9@udp:1:34:5").value();
  EXPECT_EQ(machine_.add(*buffer(), MessageSend{.to = foreign}), Status::invalid);
}

TEST_F(MachineTest, DescriptorsAreChecked) {
  start_synchronous();
  const auto one = buffer(100);
  const BufferDescriptor readable = descriptor_of(QueueKind::passive_bulk_send, 101);
  EXPECT_EQ(machine_.add(*one, ActiveSend{.descriptor = readable}), Status::not_permitted);
  EXPECT_EQ(machine_.add(*one, ActiveReceive{.descriptor = readable}), Status::too_big);
  const BufferDescriptor writable = descriptor_of(QueueKind::passive_bulk_receive, 99);
  EXPECT_EQ(machine_.add(*one, ActiveReceive{.descriptor = writable}), Status::not_permitted);
  EXPECT_EQ(machine_.add(*one, ActiveSend{.descriptor = writable}), Status::too_big);
  EXPECT_EQ(machine_.add(*one, ActiveSend{.descriptor = {}}), Status::invalid);
  for (std::size_t at = 0; at < kDescriptorSize; ++at) {
    BufferDescriptor damaged = descriptor_of(QueueKind::passive_bulk_send, 100);
    damaged[at] ^= std::byte{0x10};
    EXPECT_EQ(machine_.add(*one, ActiveReceive{.descriptor = damaged}), Status::invalid) << "byte " << at;
  }
  EXPECT_EQ(machine_.add(*one, ActiveReceive{.descriptor = descriptor_of(QueueKind::passive_bulk_send, 9, "::1")}),
            Status::unreachable);
  EXPECT_TRUE(fake_.core->submitted().empty());
  EXPECT_EQ(fake_.core->reserved(), 0U);
  EXPECT_FALSE(one->is_queued());
  EXPECT_EQ(of(QueueKind::active_bulk_receive).adds, 0U);
}

TEST_F(MachineTest, APassedDeadlineIsTooLate) {
  start_synchronous();
  const auto one = buffer();
  EXPECT_EQ(machine_.add(*one, PassiveReceive{.deadline = Instant::clock::now() - hours(1)}), Status::too_late);
  EXPECT_EQ(machine_.add(*one, PassiveReceive{.deadline = Instant()}), Status::too_late);
  // The deadline is checked before the transport looks at the descriptor.
  EXPECT_EQ(machine_.add(*one, ActiveSend{.descriptor = {}, .deadline = Instant()}), Status::too_late);
  EXPECT_FALSE(one->is_queued());
  EXPECT_EQ(machine_.add(*one, PassiveReceive{.deadline = Instant::clock::now() + hours(1)}), Status::ok);
}

TEST_F(MachineTest, ARefusalOfTheCoreChangesNothing) {
  start_synchronous();
  const EndPoint to = peer();
  const auto one = buffer();
  EXPECT_EQ(machine_.add(*one, PassiveReceive{}), Status::ok);
  EXPECT_TRUE(machine_.cancel(*one));
  EXPECT_EQ(deliver(), 1U);
  const BufferDescriptor before = one->descriptor();
  for (const Status status : {Status::again, Status::no_memory, Status::message_size}) {
    fake_.core->fail_next(status);
    EXPECT_EQ(machine_.add(*one, MessageSend{.to = to}), status);
    fake_.core->fail_next(status);
    EXPECT_EQ(machine_.add(*one, PassiveSend{}), status);
  }
  EXPECT_EQ(one->descriptor(), before);
  EXPECT_FALSE(one->is_queued());
  EXPECT_EQ(fake_.core->reserved(), 0U);
  EXPECT_EQ(of(QueueKind::message_send).adds, 0U);
  EXPECT_EQ(of(QueueKind::passive_bulk_send).adds, 0U);
  EXPECT_EQ(machine_.add(*one, MessageSend{.to = to}), Status::ok);
  fake_.core->complete(Status::ok);
  EXPECT_EQ(deliver(), 1U);
}

}  // namespace
}  // namespace fairlead::net
