// Regions and their keys, shared receive queues, and cleanup.

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <set>
#include <thread>

#include "base/child_for_tests.hpp"
#include "verbs/pair_for_tests.hpp"

namespace fairlead::verbs {
namespace {

Registration at(void* address, std::uint64_t length, std::uint32_t rights) {
  return {.address = address, .length = length, .access = rights, .iova = {}};
}

TEST(MemoryRegion, IsRefusedWhatItCannotHave) {
  Side side(1, Road::self);
  std::vector<std::byte> bytes(100);
  const auto errno_of = [&](const Registration& registration) {
    const auto region = MemoryRegion::add(side.domain, registration);
    return region ? 0 : region.error().system_errno;
  };
  EXPECT_EQ(errno_of(at(bytes.data(), 100, access::local_write | access::remote_write)), 0);
  EXPECT_EQ(errno_of(at(bytes.data(), 100, access::remote_write)), EINVAL);
  EXPECT_EQ(errno_of(at(bytes.data(), 100, access::remote_atomic)), EINVAL);
  EXPECT_EQ(errno_of(at(bytes.data(), 100, access::remote_read)), 0);
  EXPECT_EQ(errno_of(at(bytes.data(), 100, access::on_demand | access::huge_pages | access::optional_range)), 0);
  EXPECT_EQ(errno_of(at(bytes.data(), 100, 1U << 20)), 0);  // relaxed ordering is optional
  EXPECT_EQ(errno_of(at(nullptr, 0, access::local_write)), 0);
  EXPECT_EQ(errno_of(at(nullptr, 100, 0)), EFAULT);
  EXPECT_EQ(errno_of(at(bytes.data(), ~0ULL, 0)), EINVAL);
  EXPECT_EQ(errno_of(at(bytes.data(), 1ULL << 45, 0)), EFAULT);
  void* readable = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_EQ(errno_of(at(readable, 4096, 0)), 0);
  EXPECT_EQ(errno_of(at(readable, 4096, access::local_write)), EFAULT);
  ::munmap(readable, 4096);
}

TEST(MemoryRegion, AStaleKeyMatchesNoneOfTheNextRegions) {
  Side side(1, Road::self);
  std::vector<std::byte> bytes(100);
  std::set<std::uint32_t> keys;
  for (int i = 0; i < 20'000; ++i) {
    auto region = *MemoryRegion::add(side.domain, at(bytes.data(), 100, 0));
    EXPECT_TRUE(keys.insert(region.lkey()).second);
    EXPECT_TRUE(region.remove());
  }
}

TEST(MemoryRegion, IsAddressedByItsIova) {
  Connected c(Road::self);
  c.a.fill(0, 64, 1);
  auto based = *MemoryRegion::add(c.b.domain, at(c.b.memory.data() + 1000, 64, Side::kAllRights | access::zero_based));
  auto moved = *MemoryRegion::add(
      c.b.domain,
      {.address = c.b.memory.data() + 2000, .length = 64, .access = Side::kAllRights, .iova = 0x7000'0000'0000});
  const Sge from = c.a.sge(0, 64);
  for (const auto& [key, address] : {std::pair{based.rkey(), std::uint64_t{0}}, {moved.rkey(), 0x7000'0000'0000}}) {
    ASSERT_EQ(c.pa.post_send({.id = 1,
                              .sges = {&from, 1},
                              .opcode = SendOpcode::write,
                              .flags = send_flags::signaled,
                              .rkey = key,
                              .remote_addr = address}),
              0);
    EXPECT_EQ(c.one_at_a().status, WcStatus::success);
  }
  EXPECT_EQ(std::memcmp(c.a.memory.data(), c.b.memory.data() + 1000, 64), 0);
  EXPECT_EQ(std::memcmp(c.a.memory.data(), c.b.memory.data() + 2000, 64), 0);
}

TEST(MemoryRegion, OfAnotherDomainIsNotServed) {
  Connected c(Road::udp);
  auto other = *ProtectionDomain::allocate(c.b.context);
  auto region = *MemoryRegion::add(other, at(c.b.memory.data(), 100, Side::kAllRights));
  const Sge from = c.a.sge(0, 8);
  ASSERT_EQ(c.pa.post_send({.id = 1,
                            .sges = {&from, 1},
                            .opcode = SendOpcode::write,
                            .rkey = region.rkey(),
                            .remote_addr = c.b.remote(0)}),
            0);
  EXPECT_EQ(c.one_at_a().status, WcStatus::rem_access_err);
}

TEST(MemoryRegion, ChangesInOneStepOrNotAtAll) {
  Side side(1, Road::self);
  std::vector<std::byte> bytes(100), others(200);
  auto region = *MemoryRegion::add(side.domain, at(bytes.data(), 100, access::local_write));
  const std::uint32_t key = region.lkey();
  EXPECT_FALSE(region.change({.place = {}, .access = access::remote_write}));
  EXPECT_EQ(region.lkey(), key);
  EXPECT_FALSE(region.change({.place = at(nullptr, 5000, 0), .access = {}}));
  EXPECT_EQ(region.address(), bytes.data());
  EXPECT_TRUE(region.change({.place = at(others.data(), 200, 0), .access = {}}));
  EXPECT_EQ(region.address(), others.data());
  EXPECT_EQ(region.length(), 200u);
  EXPECT_EQ(region.lkey(), key);
  auto other = *ProtectionDomain::allocate(side.context);
  EXPECT_TRUE(region.change({.place = {}, .access = {}, .domain = &other}));
  EXPECT_EQ(other.deallocate().error().system_errno, EBUSY);
  EXPECT_TRUE(region.remove());
  EXPECT_TRUE(other.deallocate());
}

TEST(MemoryRegion, MayGoWhileRequestsAreUnderWay) {
  Connected c(Road::faulty);
  constexpr std::size_t kBytes = 1 << 20;
  void* mapping = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto region = *MemoryRegion::add(c.a.domain, at(mapping, kBytes, access::local_write));
  const Sge from{reinterpret_cast<std::uintptr_t>(mapping), kBytes, region.lkey()};
  for (std::uint64_t id = 0; id < 8; ++id) {
    ASSERT_EQ(c.pa.post_send({.id = id,
                              .sges = {&from, 1},
                              .opcode = SendOpcode::write,
                              .flags = send_flags::signaled,
                              .rkey = c.b.region.rkey(),
                              .remote_addr = c.b.remote(0)}),
              0);
  }
  ASSERT_TRUE(region.remove());
  ASSERT_EQ(::munmap(mapping, kBytes), 0);  // nothing reads it any more
  EXPECT_EQ(c.at_a(8).size(), 8u);
}

TEST(MemoryRegion, OfTheTargetMayGoWhileItIsWritten) {
  Connected c(Road::faulty);
  constexpr std::size_t kBytes = 1 << 20;
  void* mapping = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto region = *MemoryRegion::add(c.b.domain, at(mapping, kBytes, Side::kAllRights));
  const Sge from = c.a.sge(0, kBytes);
  for (std::uint64_t id = 0; id < 8; ++id) {
    ASSERT_EQ(c.pa.post_send({.id = id,
                              .sges = {&from, 1},
                              .opcode = id % 2 == 0 ? SendOpcode::write : SendOpcode::read,
                              .flags = send_flags::signaled,
                              .rkey = region.rkey(),
                              .remote_addr = reinterpret_cast<std::uintptr_t>(mapping)}),
              0);
  }
  ASSERT_TRUE(region.remove());
  ASSERT_EQ(::munmap(mapping, kBytes), 0);
  const auto done = c.at_a(8);
  ASSERT_EQ(done.size(), 8u);
  EXPECT_EQ(done.back().status, WcStatus::wr_flush_err);
  EXPECT_TRUE(std::ranges::any_of(done, [](const auto& one) { return one.status == WcStatus::rem_access_err; }));
}

TEST(SharedReceiveQueue, ServesManyAndTellsWhenItRunsLow) {
  Side b(1, Road::self);
  auto shared = *SharedReceiveQueue::create(b.domain, {.max_wr = 10, .max_sge = 2, .limit = 3});
  EXPECT_EQ(shared.query().limit, 3u);
  std::vector<QueuePair> pairs;
  for (int i = 0; i < 2; ++i) {
    pairs.push_back(std::move(*QueuePair::create(b.domain, {.send_queue = &b.queue,
                                                            .receive_queue = &b.queue,
                                                            .shared_receive = &shared,
                                                            .capacity = {.max_send_wr = 16}})));
    move_up(pairs.back(), attributes_for({}, b.device, pairs.back().number(), 1, 1), QpState::rts);
  }
  EXPECT_EQ(shared.destroy().error().system_errno, EBUSY);
  const Sge to = b.sge(0, 100);
  EXPECT_EQ(pairs[0].post_receive({.id = 1, .sges = {&to, 1}}), EINVAL);
  std::vector<ReceiveRequest> requests;
  for (std::uint64_t id = 0; id < 12; ++id) requests.push_back({.id = id, .sges = {&to, 1}});
  std::size_t taken = 0;
  EXPECT_EQ(shared.post(requests, taken), ENOMEM);
  EXPECT_EQ(taken, 10u);
  const std::array<Sge, 3> three{to, to, to};
  const ReceiveRequest too_many{.id = 1, .sges = three};
  EXPECT_EQ(shared.post({&too_many, 1}, taken), EINVAL);
  EXPECT_FALSE(shared.modify(5, {}));  // ten are posted
  EXPECT_TRUE(shared.modify(20, {}));
  EXPECT_EQ(shared.query().max_wr, 20u);
  for (std::uint64_t i = 0; i < 8; ++i) {
    EXPECT_TRUE(Connected::events(b).empty()) << i;
    ASSERT_EQ(pairs[i % 2].post_send({.id = 100, .sges = {}, .flags = 0}), 0);
  }
  EXPECT_EQ(Connected::events(b), std::vector{AsyncEventType::srq_limit_reached});
  EXPECT_EQ(shared.query().limit, 0u);  // disarmed
  const auto received = collect(b, b, 8);
  ASSERT_EQ(received.size(), 8u);
  for (std::uint64_t i = 0; i < 8; ++i) EXPECT_EQ(received[i].wr_id, i);  // taken in order
  move(pairs[0], {}, QpState::err);
  EXPECT_EQ(Connected::events(b), std::vector{AsyncEventType::qp_last_wqe_reached});
  ASSERT_EQ(pairs[1].post_send({.id = 100, .sges = {}}), 0);  // the remaining receives go to the other queue pair
  EXPECT_EQ(collect(b, b, 1)[0].wr_id, 8u);
  pairs.clear();
  EXPECT_TRUE(shared.destroy());
}

TEST(SharedReceiveQueue, AnEmptyOneIsNotReady) {
  Side b(2, Road::udp);
  auto shared = *SharedReceiveQueue::create(b.domain, {.max_wr = 4});
  Side a(1, Road::udp);
  PairOptions options;
  options.rnr_retry = 1;
  auto pa = *make_pair_at(a);
  auto pb = *QueuePair::create(
      b.domain, {.send_queue = &b.queue, .receive_queue = &b.queue, .shared_receive = &shared, .capacity = {}});
  move_up(pa, attributes_for(options, b.device, pb.number(), 1, 1), QpState::rts);
  move_up(pb, attributes_for(options, a.device, pa.number(), 1, 1), QpState::rts);
  ASSERT_EQ(pa.post_send({.id = 1, .sges = {}}), 0);
  EXPECT_EQ(collect(a, b, 1)[0].status, WcStatus::rnr_retry_exc_err);
  EXPECT_EQ(pb.state(), QpState::rts);
}

TEST(QueuePairs, AreBoundedAndAllCanBeHad) {
  Side side(1, Road::self);
  std::vector<QueuePair> pairs;
  for (;;) {
    auto pair = make_pair_at(side);
    if (!pair) {
      EXPECT_EQ(pair.error().system_errno, ENOMEM);
      break;
    }
    EXPECT_GT(pair->number() & 0x3FFF, 1u);
    pairs.push_back(std::move(*pair));
  }
  EXPECT_EQ(pairs.size(), side.context.limits().max_qp);
  const std::uint32_t released = pairs[100].number();
  ASSERT_TRUE(pairs[100].destroy());
  EXPECT_EQ(make_pair_at(side)->number(), released);
}

TEST(QueuePairs, CapacitiesBeyondTheDeviceAreRefused) {
  Side side(1, Road::self);
  const DeviceLimits& limits = side.context.limits();
  for (const QpCapacity& beyond :
       {QpCapacity{.max_send_wr = limits.max_qp_wr + 1}, QpCapacity{.max_recv_wr = limits.max_qp_wr + 1},
        QpCapacity{.max_send_sge = limits.max_sge + 1}, QpCapacity{.max_recv_sge = limits.max_sge + 1},
        QpCapacity{.max_inline = limits.max_inline + 1}}) {
    EXPECT_EQ(make_pair_at(side, QpType::rc, beyond).error().system_errno, EINVAL);
  }
  EXPECT_EQ(make_pair_at(side, static_cast<QpType>(8)).error().system_errno, EOPNOTSUPP);
  auto pair = *make_pair_at(side, QpType::rc, {.max_send_sge = 2, .max_inline = 40});
  move_up(pair, attributes_for({}, side.device, pair.number(), 1, 1), QpState::rts);
  const std::array<Sge, 3> sges{side.sge(0, 8), side.sge(0, 8), side.sge(0, 8)};
  EXPECT_EQ(pair.post_send({.id = 1, .sges = sges}), EINVAL);
  const Sge long_one = side.sge(0, 41);
  EXPECT_EQ(pair.post_send({.id = 1, .sges = {&long_one, 1}, .flags = send_flags::inlined}), EINVAL);
  EXPECT_EQ(pair.post_send({.id = 1, .sges = {}, .opcode = SendOpcode::read, .flags = send_flags::inlined}), EINVAL);
}

// rdma_xclient posts 16 bytes inline and asks for none. Other devices give the room of the SGEs.
TEST(QueuePairs, InlineAsMuchAsTheirSgesTakeWithoutAsking) {
  Side side(1, Road::self);
  struct {
    std::uint32_t sges, asked, given;
  } const rows[] = {{1, 0, 16}, {0, 0, 16}, {2, 0, 32}, {16, 0, 64}, {1, 40, 40}, {16, 1024, 1024}};
  for (const auto& row : rows) {
    auto pair = *make_pair_at(side, QpType::rc, {.max_send_sge = row.sges, .max_inline = row.asked});
    EXPECT_EQ(pair.capacity().max_inline, row.given) << row.sges << " SGEs, " << row.asked << " B";
    move_up(pair, attributes_for({}, side.device, pair.number(), 1, 1), QpState::rts);
    const Sge just = side.sge(0, row.given), beyond = side.sge(0, row.given + 1);
    EXPECT_EQ(pair.post_send({.id = 1, .sges = {&just, 1}, .flags = send_flags::inlined}), 0);
    EXPECT_EQ(pair.post_send({.id = 1, .sges = {&beyond, 1}, .flags = send_flags::inlined}), EINVAL);
  }
}

TEST(Processes, AChildOfForkBeginsAnew) {
  Connected c(Road::udp);
  const ::pid_t child = ::fork();
  if (child == 0) {
    // Nothing of the parent's is usable, and nothing hangs.
    bool is_well = c.pa.post_send({.id = 1, .sges = {}}) == EIO;
    WorkCompletion none;
    is_well = is_well && c.a.queue.poll({&none, 1}) == -1;
    is_well = is_well && !ProtectionDomain::allocate(c.a.context);
    {
      Side fresh(1, Road::udp);
      auto pair = make_pair_at(fresh);
      is_well = is_well && pair && pair->number() >> 14 != c.pa.number() >> 14;  // the child has an engine of its own
    }
    ::_exit(is_well ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  const Sge to = c.b.sge(0, 10);
  ASSERT_EQ(c.pb.post_receive({.id = 1, .sges = {&to, 1}}), 0);
  ASSERT_EQ(c.pa.post_send({.id = 1, .sges = {}}), 0);
  EXPECT_EQ(c.one_at_b().status, WcStatus::success);
}

// The child exits with everything in flight: posted messages arrive, and received ones are acknowledged.
TEST(Processes, WhatIsPostedRightBeforeTheExitArrives) {
  constexpr std::uint64_t kSends = 20;
  std::array<int, 2> up{}, down{};
  ASSERT_EQ(::pipe(up.data()) | ::pipe(down.data()), 0);
  const ::pid_t child = ::fork();
  if (child == 0) {
    base::is_child_of_test = true;
    auto* const side = new Side(1, Road::udp);
    auto* const pair = new QueuePair(std::move(*make_pair_at(*side, QpType::rc, {.max_send_wr = kSends})));
    const std::uint32_t mine = pair->number();
    std::uint32_t theirs = 0;
    if (::write(up[1], &mine, sizeof mine) < 0 || ::read(down[0], &theirs, sizeof theirs) < 0) ::_exit(1);
    Device there = side->device;
    there.gid[15] = 2;
    move_up(*pair, attributes_for({}, there, theirs, 1, 2), QpState::rts);
    const Sge from = side->sge(0, 60'000);
    for (std::uint64_t i = 0; i < kSends; ++i) {
      if (pair->post_send({.id = i, .sges = {&from, 1}, .flags = send_flags::signaled}) != 0) ::_exit(1);
    }
    std::exit(0);
  }
  Side side(2, Road::udp);
  auto pair = make_pair_at(side, QpType::rc, {.max_send_wr = 1, .max_recv_wr = kSends});
  ASSERT_TRUE(pair);
  const Sge to = side.sge(0, 60'000);
  std::uint32_t theirs = 0;
  ASSERT_EQ(::read(up[0], &theirs, sizeof theirs), static_cast<ssize_t>(sizeof theirs));
  Device there = side.device;
  there.gid[15] = 1;
  move_up(*pair, attributes_for({}, there, theirs, 2, 1), QpState::rts);
  for (std::uint64_t i = 0; i < kSends; ++i) ASSERT_EQ(pair->post_receive({.id = i, .sges = {&to, 1}}), 0);
  const std::uint32_t mine = pair->number();
  ASSERT_EQ(::write(down[1], &mine, sizeof mine), static_cast<ssize_t>(sizeof mine));
  const auto received = collect(side, side, kSends);
  EXPECT_EQ(received.size(), kSends);
  for (const WorkCompletion& one : received) EXPECT_EQ(one.status, WcStatus::success);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (const int end : {up[0], up[1], down[0], down[1]}) ::close(end);
}

TEST(Threads, PostAndPollOnDifferentAndOnTheSameObjects) {
  Connected c(Road::udp);
  constexpr std::uint64_t kEach = 400;
  constexpr int kThreads = 3;
  const Sge to = c.b.sge(0, 1000);
  std::atomic<std::uint64_t> received{0}, sent{0};
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      const Sge from = c.a.sge(0, 64);
      for (std::uint64_t i = 0; i < kEach && std::chrono::steady_clock::now() < end;) {
        const int error = c.pa.post_send({.id = i, .sges = {&from, 1}, .flags = send_flags::signaled});
        if (error == 0) ++i;
        std::array<WorkCompletion, 4> some;
        const int count = c.a.queue.poll(some);
        if (count > 0) sent += static_cast<std::uint64_t>(count);
      }
    });
    threads.emplace_back([&] {
      std::uint64_t posted = 0;
      while (received < kThreads * kEach && std::chrono::steady_clock::now() < end) {
        if (posted < kEach && c.pb.post_receive({.id = posted, .sges = {&to, 1}}) == 0) ++posted;
        std::array<WorkCompletion, 4> some;
        const int count = c.b.queue.poll(some);
        if (count > 0) received += static_cast<std::uint64_t>(count);
      }
    });
  }
  threads.clear();
  EXPECT_EQ(received, kThreads * kEach);
  while (sent < kThreads * kEach && std::chrono::steady_clock::now() < end) sent += c.at_a(1).size();
  EXPECT_EQ(sent, kThreads * kEach);
}

// After a queue pair is destroyed, none of its requests completes, and peers do not write to deregistered memory.
TEST(Threads, DestroyWhatIsBusyWhileOthersPollItsQueue) {
  constexpr std::uint32_t kLength = 20'000;
  constexpr std::uint64_t kRounds = 25, kEach = 16;
  Side a(1, Road::udp), b(2, Road::udp);
  std::atomic<bool> is_over{false};
  std::atomic<std::uint64_t> first_alive{0};  // the id of the first request whose queue pair is not destroyed
  std::jthread poller_of_a([&] {
    while (!is_over) {
      const std::uint64_t alive = first_alive.load();
      std::array<WorkCompletion, 4> some;
      const int count = a.queue.poll(some);
      ASSERT_GE(count, 0);
      for (const WorkCompletion& one : std::span(some).first(static_cast<std::size_t>(count))) {
        EXPECT_GE(one.wr_id, alive) << "of a pair that is gone";
        EXPECT_TRUE(one.status == WcStatus::success || one.status == WcStatus::rem_access_err ||
                    one.status == WcStatus::retry_exc_err || one.status == WcStatus::wr_flush_err)
            << static_cast<int>(one.status);
      }
    }
  });
  std::jthread poller_of_b([&] {
    std::array<WorkCompletion, 4> some;
    while (!is_over) EXPECT_EQ(b.queue.poll(some), 0) << "it has posted nothing";
  });
  std::vector<std::byte> target(kLength);
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    auto pa = *make_pair_at(a, QpType::rc, {.max_send_wr = kEach}), pb = *make_pair_at(b);
    auto region = *MemoryRegion::add(b.domain, at(target.data(), kLength, Side::kAllRights));
    move_up(pa, attributes_for({}, b.device, pb.number(), 1, 1), QpState::rts);
    move_up(pb, attributes_for({}, a.device, pa.number(), 1, 1), QpState::rts);
    const Sge from = a.sge(0, kLength);
    for (std::uint64_t i = 0; i < kEach; ++i) {
      ASSERT_EQ(pa.post_send({.id = round * kEach + i,
                              .sges = {&from, 1},
                              .opcode = i % 2 == 0 ? SendOpcode::write : SendOpcode::read,
                              .flags = send_flags::signaled,
                              .rkey = region.rkey(),
                              .remote_addr = reinterpret_cast<std::uintptr_t>(target.data())}),
                0);
    }
    const auto mark = static_cast<std::byte>(round + 1);
    std::jthread destroyer([&] { EXPECT_TRUE(pb.destroy()); });
    std::jthread remover([&] {
      EXPECT_TRUE(region.remove());
      std::ranges::fill(target, mark);
    });
    EXPECT_TRUE(pa.destroy());
    first_alive = (round + 1) * kEach;
    remover.join();
    destroyer.join();
    EXPECT_TRUE(std::ranges::all_of(target, [&](std::byte byte) { return byte == mark; })) << "round " << round;
  }
  is_over = true;
}

TEST(Devices, AreTheAddressesOfThisHost) {
  const auto all = devices();
  ASSERT_TRUE(all);
  ASSERT_FALSE(all->empty());
  for (const Device& device : *all) {
    EXPECT_NE(device.guid, 0u);
    EXPECT_FALSE(device.interface_name.empty());
  }
  const auto loopback = std::ranges::find(*all, "127.0.0.1", &Device::address);
  ASSERT_NE(loopback, all->end());
  auto context = *Context::open(*loopback);
  EXPECT_EQ(*context.query_gid(1, 0), loopback->gid);
  EXPECT_EQ(*context.query_gid(1, 1), Gid{});
  EXPECT_EQ(*context.query_gid(1, 3), loopback->gid);
  EXPECT_FALSE(context.query_gid(1, 4));
  EXPECT_FALSE(context.query_port(2));
  EXPECT_EQ(*context.query_pkey(1, 0), 0xFFFF);
  auto domain = *ProtectionDomain::allocate(context);
  EXPECT_EQ(context.close().error().system_errno, EBUSY);
  EXPECT_TRUE(domain.deallocate());
  EXPECT_TRUE(context.close());
}

}  // namespace
}  // namespace fairlead::verbs
