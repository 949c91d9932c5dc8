// Messages between two engines over shared memory allocate nothing once they run: counted by the allocator of this very
// program, in both engines, under back-pressure, too.

#include <fairlead/net.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include <fmt/format.h>

#include "tests/net_pair.hpp"

namespace {

std::atomic<std::uint64_t> allocations{0};

void* allocate(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(bytes); memory != nullptr) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) {
  return allocate(bytes);
}
void* operator new[](std::size_t bytes) {
  return allocate(bytes);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}

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

TEST(ShmAllocation, NothingIsAllocatedInSteadyState) {
  constexpr std::size_t kBuffers = 8;
  constexpr std::uint64_t kSizes[] = {8, 700, 9000, 200'000};  // whole, whole by reference, in chunks, more than a ring
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
        ASSERT_EQ(event.status, Status::ok);
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
    const std::uint64_t before = allocations.load();
    run(2000);
    EXPECT_EQ(allocations.load() - before, 0u) << "messages of " << size << " bytes";
    is_ending = true;  // messages may still be on their way
    for (const auto& inbox : inboxes) far.machine.cancel(*inbox);
    while (idle.size() < kBuffers) near.machine.deliver_all();
    while (std::ranges::any_of(inboxes, [](const auto& inbox) { return inbox->is_queued(); }))
      far.machine.deliver_all();
  }
}

}  // namespace
}  // namespace fairlead::tests
