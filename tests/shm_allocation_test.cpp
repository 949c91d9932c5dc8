// In steady state, messages between two engines over shared memory allocate nothing, neither from the heap nor from the
// kernel. That holds in both engines and with full rings.

#include <fairlead/net.hpp>

#include <gtest/gtest.h>

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <new>
#include <vector>

#include <fmt/format.h>

#include "tests/allocation_count.hpp"
#include "tests/net_pair.hpp"

namespace fairlead::tests {
namespace {

struct End {
  explicit End(net::Domain& domain) : machine(domain) {
    EXPECT_TRUE(machine.deliver_synchronously());
    own = machine.start_and_wait(fmt::format("127.0.0.1@udp:{}:34:1", free_pid("127.0.0.1@udp"))).value();
  }
  net::TransferMachine machine;
  net::EndPoint own;
};

TEST(ShmAllocation, EachKindIsCounted) {
  struct alignas(64) Aligned {
    char bytes[64];
  };
  void* memory = nullptr;
  const std::vector<std::function<void()>> kinds{
      [&] { memory = std::malloc(8), std::free(memory); },
      [&] { memory = std::calloc(8, 8), std::free(memory); },
      [&] { memory = std::realloc(std::malloc(8), 8000), std::free(memory); },
      [&] { memory = std::aligned_alloc(64, 64), std::free(memory); },
      [&] { ::posix_memalign(&memory, 64, 64) == 0 ? std::free(memory) : void(); },
      [&] { memory = ::operator new(8), ::operator delete(memory); },
      [&] { memory = ::operator new[](8), ::operator delete[](memory); },
      [&] { memory = new Aligned, delete static_cast<Aligned*>(memory); },
      [&] {
        memory = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memory = ::mremap(memory, 4096, 8192, MREMAP_MAYMOVE);
        ::munmap(memory, 8192);
      },
  };
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const std::uint64_t before = allocation_count();
    kinds[i]();
    EXPECT_GT(allocation_count(), before) << "kind " << i;
  }
}

TEST(ShmAllocation, NothingIsAllocatedInSteadyState) {
  constexpr std::size_t kBuffers = 8;
  // Whole, whole by reference, in chunks, longer than the ring.
  constexpr std::uint64_t kSizes[] = {8, 700, 9000, 200'000};
  auto domain = net::Domain::open({.engine = {{"path", "shm"}}}).value();
  End near(domain), far(domain);
  const auto to_far = near.machine.create_end_point(far.own.address()).value();
  for (const std::uint64_t size : kSizes) {
    std::uint64_t sent = 0, received = 0;
    bool is_ending = false;
    std::vector<std::unique_ptr<net::Buffer>> outboxes, inboxes;
    std::vector<net::Buffer*> idle;
    idle.reserve(kBuffers);
    for (std::size_t i = 0; i < kBuffers; ++i) {
      outboxes.push_back(net::Buffer::allocate(domain, size).value());
      outboxes.back()->set_callback([&](const net::BufferEvent& event) {
        // A long message that is still in flight at the end may find no buffer.
        EXPECT_TRUE(event.status == Status::ok || (is_ending && event.status == Status::no_buffer))
            << to_string(event.status);
        ++sent;
        idle.push_back(&event.buffer);
      });
      idle.push_back(outboxes.back().get());
      inboxes.push_back(net::Buffer::allocate(domain, size).value());
      inboxes.back()->set_callback([&](const net::BufferEvent& event) {
        if (event.status == Status::canceled || is_ending) return;
        ++received;
        ASSERT_EQ(far.machine.add(event.buffer, net::MessageReceive{}), Status::ok);
      });
      ASSERT_EQ(far.machine.add(*inboxes.back(), net::MessageReceive{}), Status::ok);
    }
    const auto run = [&](std::uint64_t messages) {
      for (const std::uint64_t end = received + messages; received < end;) {
        while (!idle.empty() && sent + kBuffers - idle.size() < received + kBuffers) {
          net::Buffer& buffer = *idle.back();
          idle.pop_back();
          ASSERT_EQ(near.machine.add(buffer, net::MessageSend{.to = to_far}), Status::ok);
        }
        near.machine.deliver_all();
        far.machine.deliver_all();
      }
    };
    run(200);
    const std::uint64_t before = allocation_count();
    run(2000);
    EXPECT_EQ(allocation_count() - before, 0u) << "messages of " << size << " bytes";
    is_ending = true;  // messages may still be in flight
    for (const auto& inbox : inboxes) far.machine.cancel(*inbox);
    while (idle.size() < kBuffers) near.machine.deliver_all();
    while (std::ranges::any_of(inboxes, [](const auto& inbox) { return inbox->is_queued(); }))
      far.machine.deliver_all();
  }
}

}  // namespace
}  // namespace fairlead::tests
