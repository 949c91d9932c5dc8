// Bulk transfers and their descriptors, as Motr's tests `buf_desc` and `bulk` of its network transports require.

#include <thread>

#include <fmt/format.h>

#include "net/passive_descriptor.hpp"
#include "tests/net_pair.hpp"
#include "wire/buffer_descriptor.hpp"

namespace fairlead::tests {
namespace {

using net::ActiveReceive;
using net::ActiveSend;
using net::Buffer;
using net::BufferDescriptor;
using net::PassiveReceive;
using net::PassiveSend;
using net::QueueKind;
using net::StopMode;

/// Returns the descriptor with one field changed and a valid checksum.
template <typename Change>
BufferDescriptor forged(const BufferDescriptor& bytes, Change&& change) {
  wire::BufferDescriptor descriptor = wire::read_descriptor(bytes);
  change(descriptor);
  BufferDescriptor result;
  wire::encode(descriptor, result);
  return result;
}

class NetBulk : public NetPair {
 protected:
  /// Near reads a buffer that far offers.
  void fetch(std::uint64_t length, std::uint64_t passive_size, std::uint64_t active_size) {
    net::Record near_record, far_record;
    const auto passive = buffer(passive_size, far_record), active = buffer(active_size, near_record);
    fill(*passive, length, length);
    ASSERT_EQ(far().add(*passive, PassiveSend{.length = length}), Status::ok);
    ASSERT_EQ(near().add(*active, ActiveReceive{.descriptor = passive->descriptor()}), Status::ok);
    const auto end = near_record.wait_for(1).at(0);
    EXPECT_EQ(end.status, Status::ok);
    EXPECT_EQ(end.queue, QueueKind::active_bulk_receive);
    EXPECT_EQ(end.length, length);
    EXPECT_TRUE(end.is_final);
    EXPECT_EQ(far_record.wait_for(1).at(0).status, Status::ok);
    EXPECT_TRUE(holds(*active, 0, length, length));
  }
  /// Near writes a buffer that far offers.
  void deposit(std::uint64_t length, std::uint64_t passive_size, std::uint64_t active_size) {
    net::Record near_record, far_record;
    const auto passive = buffer(passive_size, far_record), active = buffer(active_size, near_record);
    fill(*active, length, length);
    ASSERT_EQ(far().add(*passive, PassiveReceive{}), Status::ok);
    ASSERT_EQ(near().add(*active, ActiveSend{.descriptor = passive->descriptor(), .length = length}), Status::ok);
    EXPECT_EQ(near_record.wait_for(1).at(0).status, Status::ok);
    const auto end = far_record.wait_for(1).at(0);
    EXPECT_EQ(end.status, Status::ok);
    EXPECT_EQ(end.queue, QueueKind::passive_bulk_receive);
    EXPECT_EQ(end.length, length);
    EXPECT_TRUE(holds(*passive, 0, length, length));
  }
  /// Returns the status of a transfer by near, from add() or from its event.
  template <typename Operation>
  Status outcome(const Operation& operation) {
    net::Record record;
    const auto active = buffer(100, record);
    const Status status = near().add(*active, operation);
    return status == Status::ok ? record.wait_for(1).at(0).status : status;
  }
};

TEST_P(NetBulk, CarriesAnySize) {
  for (const std::uint64_t length : {1ULL, 1000ULL, 65001ULL, (8ULL << 20) + 7}) {
    SCOPED_TRACE(length);
    fetch(length, length, length);
    deposit(length, length, length);
  }
}

TEST_P(NetBulk, TheOtherSideMayBeLarger) {
  fetch(1000, 1500, 3000);
  deposit(1000, 3000, 1500);
}

TEST_P(NetBulk, BothSidesMayBeScattered) {
  std::vector<std::byte> memory(400000);
  std::vector<std::span<std::byte>> odd, even;
  for (std::size_t at = 0, size = 1; at + 2 * size < memory.size(); at += 2 * size, size = size * 2 % 5000 + 1) {
    odd.push_back(std::span(memory).subspan(at, size));
    even.push_back(std::span(memory).subspan(at + size, size));
    if (odd.size() == domain_->segments_max()) break;
  }
  const auto from = Buffer::borrow(*domain_, odd).value(), to = Buffer::borrow(*domain_, even).value();
  from->set_callback(near_record_.callback());
  to->set_callback(far_record_.callback());
  fill(*from, from->size(), 3);
  ASSERT_EQ(far().add(*to, PassiveReceive{}), Status::ok);
  ASSERT_EQ(near().add(*from, ActiveSend{.descriptor = to->descriptor()}), Status::ok);
  near_record_.wait_for(1);
  EXPECT_EQ(far_record_.wait_for(1).at(0).length, from->size());
  EXPECT_TRUE(holds(*to, 0, to->size(), 3));
}

TEST_P(NetBulk, PassiveBuffersCanBeCancelled) {
  const auto readable = buffer(100, far_record_), writable = buffer(100, far_record_);
  ASSERT_EQ(far().add(*readable, PassiveSend{}), Status::ok);
  ASSERT_EQ(far().add(*writable, PassiveReceive{}), Status::ok);
  EXPECT_TRUE(far().cancel(*readable));
  EXPECT_TRUE(far().cancel(*writable));
  for (const auto& entry : far_record_.wait_for(2)) EXPECT_EQ(entry.status, Status::canceled);
  EXPECT_EQ(outcome(ActiveReceive{.descriptor = readable->descriptor()}), Status::stale);
  EXPECT_EQ(outcome(ActiveSend{.descriptor = writable->descriptor()}), Status::stale);
}

TEST_P(NetBulk, WrongPairsAndSizesAreRefused) {
  const auto readable = buffer(101, far_record_), writable = buffer(99, far_record_);
  ASSERT_EQ(far().add(*readable, PassiveSend{}), Status::ok);
  ASSERT_EQ(far().add(*writable, PassiveReceive{}), Status::ok);
  EXPECT_EQ(outcome(ActiveSend{.descriptor = readable->descriptor()}), Status::not_permitted);
  EXPECT_EQ(outcome(ActiveReceive{.descriptor = writable->descriptor()}), Status::not_permitted);
  EXPECT_EQ(outcome(ActiveReceive{.descriptor = readable->descriptor()}), Status::too_big);
  EXPECT_EQ(outcome(ActiveSend{.descriptor = writable->descriptor()}), Status::too_big);
  EXPECT_TRUE(readable->is_queued());
  EXPECT_TRUE(writable->is_queued());
}

// A malicious initiator can forge a descriptor to pass its own checks, so the target must repeat them.
TEST_P(NetBulk, TheTargetChecksForItself) {
  const auto readable = buffer(101, far_record_), writable = buffer(99, far_record_);
  ASSERT_EQ(far().add(*readable, PassiveSend{}), Status::ok);
  ASSERT_EQ(far().add(*writable, PassiveReceive{}), Status::ok);
  const auto as = [](std::uint8_t queue, std::uint64_t size) {
    return [=](wire::BufferDescriptor& descriptor) {
      descriptor.queue = queue;
      descriptor.size = size;
    };
  };
  EXPECT_EQ(outcome(ActiveSend{.descriptor = forged(readable->descriptor(), as(2, 100))}), Status::not_permitted);
  EXPECT_EQ(outcome(ActiveReceive{.descriptor = forged(writable->descriptor(), as(3, 99))}), Status::not_permitted);
  EXPECT_EQ(outcome(ActiveSend{.descriptor = forged(writable->descriptor(), as(2, 100))}), Status::too_big);
  EXPECT_TRUE(readable->is_queued());
  EXPECT_TRUE(writable->is_queued());
}

TEST_P(NetBulk, ForgedKeysAndLivesAreStale) {
  const auto writable = buffer(100, far_record_);
  ASSERT_EQ(far().add(*writable, PassiveReceive{}), Status::ok);
  const BufferDescriptor good = writable->descriptor();
  for (unsigned bit = 0; bit < 64; bit += 7) {
    const auto flip = std::uint64_t{1} << bit;
    EXPECT_EQ(outcome(ActiveSend{.descriptor = forged(good, [&](auto& d) { d.key ^= flip; })}), Status::stale);
  }
  EXPECT_EQ(outcome(ActiveSend{.descriptor = forged(good, [](auto& d) { d.epoch ^= 4; })}), Status::stale);
  EXPECT_EQ(outcome(ActiveSend{.descriptor = forged(good, [](auto& d) { d.port ^= 1U << 3; })}), Status::stale);
  EXPECT_TRUE(writable->is_queued());
  EXPECT_EQ(outcome(ActiveSend{.descriptor = good}), Status::ok);
}

TEST_P(NetBulk, EachFlippedByteIsInvalid) {
  const auto writable = buffer(100, far_record_);
  ASSERT_EQ(far().add(*writable, PassiveReceive{}), Status::ok);
  for (std::size_t at = 0; at < net::kDescriptorSize; ++at) {
    BufferDescriptor damaged = writable->descriptor();
    damaged[at] ^= std::byte{0x80};
    EXPECT_EQ(outcome(ActiveSend{.descriptor = damaged}), Status::invalid);
    EXPECT_FALSE(net::inspect(damaged));
  }
}

TEST_P(NetBulk, ADescriptorServesOnce) {
  const auto writable = buffer(100, far_record_);
  ASSERT_EQ(far().add(*writable, PassiveReceive{}), Status::ok);
  const BufferDescriptor first = writable->descriptor();
  EXPECT_EQ(outcome(ActiveSend{.descriptor = first}), Status::ok);
  far_record_.wait_for(1);
  while (writable->is_queued()) std::this_thread::yield();
  EXPECT_EQ(outcome(ActiveSend{.descriptor = first}), Status::stale);
  ASSERT_EQ(far().add(*writable, PassiveReceive{}), Status::ok);
  EXPECT_NE(writable->descriptor(), first);
  EXPECT_EQ(outcome(ActiveSend{.descriptor = first}), Status::stale);
  EXPECT_TRUE(writable->is_queued());
}

TEST_P(NetBulk, ADescriptorDoesNotOutliveItsMachine) {
  const auto writable = buffer(100, far_record_);
  ASSERT_EQ(far().add(*writable, PassiveReceive{}), Status::ok);
  const BufferDescriptor old = writable->descriptor();
  far_ = std::make_unique<net::TransferMachine>(*domain_);
  ASSERT_EQ(far_record_.wait_for(1).at(0).status, Status::canceled);
  ASSERT_TRUE(far().start_and_wait(far_address_));
  ASSERT_EQ(far().add(*writable, PassiveReceive{}), Status::ok);
  EXPECT_EQ(outcome(ActiveSend{.descriptor = old}), Status::stale);
  EXPECT_TRUE(writable->is_queued());
  EXPECT_EQ(outcome(ActiveSend{.descriptor = writable->descriptor()}), Status::ok);
}

TEST_P(NetBulk, ManyThreadsInBothDirections) {
  std::vector<std::jthread> threads;
  for (std::uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::uint64_t round = 0; round < 8; ++round) {
        const std::uint64_t length = 1 + thread * 50000 + round * 777;
        (thread + round) % 2 == 0 ? fetch(length, length + 9, length) : deposit(length, length, length + 9);
      }
    });
  }
  threads.clear();
  expect_settled(near());
  expect_settled(far());
}

INSTANTIATE_TEST_SUITE_P(Paths, NetBulk, ::testing::ValuesIn(net_paths()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace fairlead::tests
