// One-sided operations that the initiator performs itself, between two engines of one host (qp/one_sided.cpp): which
// ones do, that nothing else changes, and what the owner of the memory may rely on.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <thread>

#include "base/process_memory.hpp"
#include "verbs/pair_for_tests.hpp"

namespace fairlead::verbs {
namespace {

/// Reads memory as a program does that polls for peers' writes: at any time, ordered only as a device orders writes.
/// ThreadSanitizer cannot know that order.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
__attribute__((no_sanitize("thread"), disable_sanitizer_instrumentation))
#endif
#endif
std::uint64_t
look_at(const std::uint64_t& word) {
  return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}

class Direct : public ::testing::Test {
 protected:
  void SetUp() override { wait_until_alone(); }

  /// The kernel may count a joined thread for a moment longer.
  static void wait_until_alone() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (base::thread_count() != 1 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    ASSERT_EQ(base::thread_count(), 1u);
  }

  static SendRequest request(SendOpcode opcode, const Sge& sge, std::uint32_t rkey, std::uint64_t remote) {
    return {.id = 1,
            .sges = {&sge, 1},
            .opcode = opcode,
            .flags = send_flags::signaled,
            .rkey = rkey,
            .remote_addr = remote};
  }

  /// Waits until the engines have met: from then on, a performs writes directly.
  static void meet(Connected& c) {
    const Sge from = c.a.sge(8192, 8);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (c.a.counted("qp.direct_writes") == 0 && std::chrono::steady_clock::now() < end) {
      ASSERT_EQ(c.pa.post_send(request(SendOpcode::write, from, c.b.region.rkey(), c.b.remote(8192))), 0);
      ASSERT_EQ(c.one_at_a().status, WcStatus::success);
    }
    ASSERT_GT(c.a.counted("qp.direct_writes"), 0u);
  }
};

TEST_F(Direct, IsCompleteBeforeThePostReturnsAndNeedsNobodyAtTheTarget) {
  Connected c(Road::shm);
  meet(c);
  for (const std::uint32_t size : {1u, 2u, 4u, 7u, 8u, 9u, 64u, 4096u, 65'537u, 2'000'000u}) {
    c.a.fill(10'000, size, size);
    const Sge from = c.a.sge(10'000, size), back = c.a.sge(2'100'000, std::min(size, 1'000'000u));
    ASSERT_EQ(c.pa.post_send(request(SendOpcode::write, from, c.b.region.rkey(), c.b.remote(8195))), 0);
    EXPECT_EQ(std::memcmp(c.a.memory.data() + 10'000, c.b.memory.data() + 8195, size), 0) << size;
    ASSERT_EQ(c.pa.post_send(request(SendOpcode::read, back, c.b.region.rkey(), c.b.remote(8195))), 0);
    EXPECT_EQ(std::memcmp(c.a.memory.data() + 2'100'000, c.b.memory.data() + 8195, back.length), 0) << size;
    std::array<WorkCompletion, 4> done;
    ASSERT_EQ(c.a.queue.poll(done), 2);
    EXPECT_EQ(done[0].status, WcStatus::success);
    EXPECT_EQ(done[1].opcode, WcOpcode::read);
    EXPECT_EQ(done[1].byte_len, back.length);
  }
}

TEST_F(Direct, AtomicsAreThoseOfTheProcessor) {
  Connected c(Road::shm);
  meet(c);
  auto& word = *reinterpret_cast<std::uint64_t*>(c.b.memory.data() + 8192 -
                                                 reinterpret_cast<std::uintptr_t>(c.b.memory.data()) % 8);
  std::atomic_ref(word).store(0);
  constexpr std::uint64_t kRounds = 20'000;
  std::thread owner([&] {
    for (std::uint64_t i = 0; i < kRounds; ++i) std::atomic_ref(word).fetch_add(1);
  });
  const Sge to = c.a.sge(0, 8);
  SendRequest add = request(SendOpcode::fetch_add, to, c.b.region.rkey(), reinterpret_cast<std::uintptr_t>(&word));
  add.compare_add = 1000;
  const std::uint64_t before = c.a.counted("qp.direct_atomics");
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    ASSERT_EQ(c.pa.post_send(add), 0);
    ASSERT_EQ(c.one_at_a().status, WcStatus::success);
  }
  owner.join();
  EXPECT_EQ(word, kRounds * 1001);
  EXPECT_EQ(c.a.counted("qp.direct_atomics") - before, kRounds);
  add.opcode = SendOpcode::compare_swap;
  add.compare_add = kRounds * 1001;
  add.swap = 5;
  ASSERT_EQ(c.pa.post_send(add), 0);
  EXPECT_EQ(word, 5u);
}

// Errors are reported as usual: by the responder, with its events, even after many requests that it never saw.
TEST_F(Direct, ErrorsAreThoseOfARemotePeer) {
  struct Wrong {
    SendOpcode opcode;
    std::uint32_t key_off;
    std::size_t offset;
    WcStatus expected;
  };
  for (const Wrong& wrong : {Wrong{SendOpcode::write, 1, 8192, WcStatus::rem_access_err},
                             Wrong{SendOpcode::write, 0, Side::kMemory - 3, WcStatus::rem_access_err},
                             Wrong{SendOpcode::read, 0, Side::kMemory, WcStatus::rem_access_err},
                             Wrong{SendOpcode::fetch_add, 0, 8193, WcStatus::rem_inv_req_err}}) {
    wait_until_alone();
    Connected c(Road::shm);
    meet(c);
    const Sge from = c.a.sge(0, 8);
    for (int i = 0; i < 5; ++i) {
      ASSERT_EQ(c.pa.post_send(request(SendOpcode::write, from, c.b.region.rkey(), c.b.remote(8192))), 0);
      ASSERT_EQ(c.one_at_a().status, WcStatus::success);
    }
    ASSERT_EQ(c.pa.post_send(request(wrong.opcode, from, c.b.region.rkey() + wrong.key_off, c.b.remote(wrong.offset))),
              0);
    EXPECT_EQ(c.one_at_a().status, wrong.expected);
    EXPECT_EQ(c.pb.state(), QpState::err);
  }
}

TEST_F(Direct, WithoutTheRightOrAfterDeregistrationNothingIsWritten) {
  PairOptions options;
  options.rights = access::local_write | access::remote_write;
  Connected c(Road::shm, options);
  meet(c);
  const Sge from = c.a.sge(0, 8);
  c.a.fill(0, 8, 99);
  const std::uint32_t key = c.b.region.rkey();
  const std::vector before(c.b.memory.begin() + 8192, c.b.memory.begin() + 8200);
  ASSERT_TRUE(c.b.region.remove());
  ASSERT_EQ(c.pa.post_send(request(SendOpcode::write, from, key, c.b.remote(8192))), 0);
  EXPECT_EQ(c.one_at_a().status, WcStatus::rem_access_err);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), c.b.memory.begin() + 8192));
}

TEST_F(Direct, AQueuePairThatLeavesItsStateTakesNothingMore) {
  PairOptions options;
  options.timeout = 14;
  options.retry_cnt = 1;
  Connected c(Road::shm, options);
  meet(c);
  move(c.pb, {}, QpState::err);
  c.a.fill(0, 8, 77);
  const Sge from = c.a.sge(0, 8);
  const std::vector before(c.b.memory.begin() + 8192, c.b.memory.begin() + 8200);
  ASSERT_EQ(c.pa.post_send(request(SendOpcode::write, from, c.b.region.rkey(), c.b.remote(8192))), 0);
  EXPECT_EQ(c.one_at_a().status, WcStatus::retry_exc_err);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), c.b.memory.begin() + 8192));
}

// Any mixture of sends and writes. A receive must not complete before earlier writes are in place, nor after later
// ones.
TEST_F(Direct, KeepsTheOrderWithWhatTravelsAsMessages) {
  PairOptions options;
  options.capacity = {.max_send_wr = 32, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1, .max_inline = 64};
  Connected c(Road::shm, options);
  meet(c);
  std::mt19937 random(7);
  constexpr std::uint64_t kRequests = 6000;
  std::uint64_t next = 0, done = 0, sends = 0, received = 0, receives = 0;
  std::vector<std::uint64_t> written_before;  // by send: the newest value written before it
  std::uint64_t value = 0;
  auto& word = *reinterpret_cast<std::uint64_t*>(c.b.memory.data() + 8192);
  word = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while ((done < kRequests || received < sends) && std::chrono::steady_clock::now() < end) {
    for (; receives < received + 64; ++receives) {
      const Sge to = c.b.sge(0, 64);
      ASSERT_EQ(c.pb.post_receive({.id = receives, .sges = {&to, 1}}), 0);
    }
    while (next < kRequests && next - done < 32 && sends - received < 60) {
      const bool is_send = random() % (next / 500 % 2 == 0 ? 3 : 60) == 0;
      if (!is_send) ++value;
      std::array<std::uint64_t, 8> words;
      words.fill(value);
      const Sge from{reinterpret_cast<std::uintptr_t>(words.data()), is_send ? 16u : 8u, 0};
      SendRequest post =
          request(is_send ? SendOpcode::send : SendOpcode::write, from, c.b.region.rkey(), c.b.remote(8192));
      post.id = next;
      post.flags |= send_flags::inlined;
      ASSERT_EQ(c.pa.post_send(post), 0);
      if (is_send) {
        written_before.push_back(value);
        ++sends;
      }
      ++next;
    }
    std::array<WorkCompletion, 32> some;
    int count = c.a.queue.poll(some);
    ASSERT_GE(count, 0);
    for (int i = 0; i < count; ++i) {
      ASSERT_EQ(some[static_cast<std::size_t>(i)].status, WcStatus::success);
      ASSERT_EQ(some[static_cast<std::size_t>(i)].wr_id, done++);
    }
    count = c.b.queue.poll(some);
    ASSERT_GE(count, 0);
    for (int i = 0; i < count; ++i) {
      ASSERT_EQ(some[static_cast<std::size_t>(i)].wr_id, received);
      ASSERT_GE(look_at(word), written_before[received]) << "a write came after the send behind it";
      ++received;
    }
  }
  EXPECT_EQ(done, kRequests);
  EXPECT_EQ(received, sends);
  EXPECT_EQ(word, value);
  EXPECT_GT(c.a.counted("qp.direct_writes"), 100u);
}

// The child of a fork sees the memory as it was, and cannot write to its parent's.
TEST_F(Direct, AForkedChildDoesNotShareItsParentsMemory) {
  Connected c(Road::shm);
  meet(c);
  c.b.fill(8192, 1000, 5);
  const std::vector before(c.b.memory.begin() + 8192, c.b.memory.begin() + 9192);
  const ::pid_t child = ::fork();
  if (child == 0) {
    const bool is_same = std::equal(before.begin(), before.end(), c.b.memory.begin() + 8192);
    std::fill(c.b.memory.begin(), c.b.memory.end(), std::byte{0xEE});
    ::_exit(is_same ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), c.b.memory.begin() + 8192));
  meet(c);
}

// While a writes continuously, b withdraws the memory and reuses it.
void withdraw_while_it_is_written(Connected& c) {
  std::atomic<bool> has_failed{false};
  std::atomic<std::uint64_t> written{0};
  const std::uint32_t key = c.b.region.rkey();
  std::thread writer([&] {
    const Sge from = c.a.sge(0, 100'000);
    for (WorkCompletion one; !has_failed;) {
      if (c.pa.post_send({.id = 1,
                          .sges = {&from, 1},
                          .opcode = SendOpcode::write,
                          .flags = send_flags::signaled,
                          .rkey = key,
                          .remote_addr = c.b.remote(8192)}) == ENOMEM)
        continue;
      while (c.a.queue.poll({&one, 1}) == 0) c.b.context.progress();
      has_failed = one.status != WcStatus::success;
      ++written;
    }
  });
  while (written < 20) std::this_thread::yield();
  ASSERT_TRUE(c.b.region.remove());
  std::ranges::fill(c.b.memory, std::byte{0x5A});
  writer.join();
  EXPECT_TRUE(std::ranges::all_of(c.b.memory, [](std::byte byte) { return byte == std::byte{0x5A}; }));
}

TEST_F(Direct, DeregisteredMemoryIsNeverTouchedAgain) {
  PairOptions options;
  options.capacity.max_send_wr = 4;
  for (int round = 0; round < 6; ++round) {
    wait_until_alone();
    Connected c(Road::shm, options);
    meet(c);
    withdraw_while_it_is_written(c);
  }
}

// Memory of a program with threads is not moved: system calls access it.
TEST(DirectCma, DeregisteredMemoryIsNeverTouchedAgain) {
  const std::jthread other([](const std::stop_token& stop) {
    while (!stop.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  PairOptions options;
  options.capacity.max_send_wr = 4;
  for (int round = 0; round < 6; ++round) {
    Connected c(Road::cma, options);
    withdraw_while_it_is_written(c);
    EXPECT_GT(c.a.counted("qp.writes_by_calls"), 0u);
  }
}

// The library's own memory needs no moving. It is therefore accessible with any threads in the program, also under
// ThreadSanitizer.
TEST(DirectMemory, OfTheLibraryIsReachedBesideOtherThreads) {
  Connected c(Road::shm);
  std::jthread other([](const std::stop_token& stop) {
    while (!stop.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  auto region = *MemoryRegion::allocate(c.b.domain, 10'001, Side::kAllRights);
  auto* memory = static_cast<std::byte*>(region.address());
  ASSERT_TRUE(std::all_of(memory, memory + region.length(), [](std::byte byte) { return byte == std::byte{0}; }));
  const Sge from = c.a.sge(0, 10'001);
  c.a.fill(0, 10'001, 17);
  const std::uint64_t before = c.a.counted("qp.direct_writes");
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (c.a.counted("qp.direct_writes") == before && std::chrono::steady_clock::now() < end) {
    ASSERT_EQ(c.pa.post_send({.id = 1,
                              .sges = {&from, 1},
                              .opcode = SendOpcode::write,
                              .flags = send_flags::signaled,
                              .rkey = region.rkey(),
                              .remote_addr = reinterpret_cast<std::uintptr_t>(memory)}),
              0);
    ASSERT_EQ(c.one_at_a().status, WcStatus::success);
  }
  EXPECT_GT(c.a.counted("qp.direct_writes"), before);
  c.b.meet_engine();
  EXPECT_EQ(std::memcmp(memory, c.a.memory.data(), 10'001), 0);
  ASSERT_TRUE(region.remove());
  ASSERT_TRUE(MemoryRegion::allocate(c.b.domain, 1 << 20, Side::kAllRights));
}

// The two engines are one process, which may trace itself. So only Yama decides whether there is traced memory.
TEST_F(Direct, ALongSendFromARegionWithoutRemoteRightsIsReadInPlace) {
  Connected c(Road::shm);
  meet(c);
  const std::uint64_t shared = c.a.counted("shm.shared_bytes");
  std::vector<std::byte> own(1 << 20);
  for (std::size_t i = 0; i < own.size(); ++i) own[i] = static_cast<std::byte>(i * 7 >> 4);
  const std::vector<std::byte> copy = own;
  auto region = *MemoryRegion::add(c.a.domain, Side::all_of(own, access::local_write));
  int scope = 0;
  const bool is_moved = !(std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope) || scope == 0;
  EXPECT_EQ(c.a.counted("shm.traced_bytes") > own.size() / 2, is_moved);
  EXPECT_EQ(c.a.counted("shm.shared_bytes"), shared) << "peers that may not trace us must not see it";
  const std::uint64_t pulled = c.a.counted("shm.messages_pulled");
  const Sge from{reinterpret_cast<std::uintptr_t>(own.data()) + 5000, 100'000, region.lkey()}, to = c.b.sge(0, 100'000);
  ASSERT_EQ(c.pb.post_receive({.id = 1, .sges = {&to, 1}}), 0);
  ASSERT_EQ(c.pa.post_send(request(SendOpcode::send, from, 0, 0)), 0);
  EXPECT_EQ(c.one_at_b().byte_len, 100'000U);
  EXPECT_EQ(c.one_at_a().status, WcStatus::success);
  EXPECT_EQ(std::memcmp(c.b.memory.data(), copy.data() + 5000, 100'000), 0);
  EXPECT_EQ(c.a.counted("shm.messages_pulled") - pulled, is_moved ? 1U : 0U);
  ASSERT_TRUE(region.remove());
  EXPECT_EQ(c.a.counted("shm.traced_bytes"), 0U);
  EXPECT_EQ(own, copy);
}

TEST_F(Direct, OneMemoryInSeveralRegionsAndAgain) {
  Connected c(Road::shm);
  meet(c);
  const Sge from = c.a.sge(0, 8);
  for (int i = 0; i < 20; ++i) {
    auto first = *MemoryRegion::add(c.b.domain, Side::all_of(c.b.memory, Side::kAllRights));
    auto part = *MemoryRegion::add(
        c.b.domain, {.address = c.b.memory.data() + 100'000, .length = 50'000, .access = Side::kAllRights, .iova = 0});
    c.a.fill(0, 8, static_cast<unsigned>(i));
    ASSERT_EQ(c.pa.post_send(request(SendOpcode::write, from, part.rkey(), 9000)), 0);
    EXPECT_EQ(std::memcmp(c.a.memory.data(), c.b.memory.data() + 109'000, 8), 0);
    if (i % 2 == 0) {
      ASSERT_TRUE(c.b.region.remove());
    }
    EXPECT_EQ(c.one_at_a().status, WcStatus::success);
    ASSERT_EQ(c.pa.post_send(request(SendOpcode::write, from, first.rkey(), c.b.remote(20'000))), 0);
    EXPECT_EQ(std::memcmp(c.a.memory.data(), c.b.memory.data() + 20'000, 8), 0);
    EXPECT_EQ(c.one_at_a().status, WcStatus::success);
    if (i % 2 == 0) c.b.region = *MemoryRegion::add(c.b.domain, Side::all_of(c.b.memory, Side::kAllRights));
  }
}

}  // namespace
}  // namespace fairlead::verbs
