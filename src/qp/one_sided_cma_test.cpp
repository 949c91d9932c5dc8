// Writes and reads that the initiator completes by cross-memory attach, in memory outside the owner's arena: which
// tables it trusts, the order of requests, and what happens if the owner cannot be reached. Both engines are in this
// process, which accesses its own memory by system calls.

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <random>

#include "qp/end_of_pair_for_tests.hpp"

namespace fairlead::qp {
namespace {

using verbs::QpState;
using verbs::QpType;
using verbs::SendOpcode;
using verbs::WcOpcode;
using verbs::WcStatus;

constexpr std::uint32_t kAll = verbs::access::remote_write | verbs::access::remote_read | verbs::access::remote_atomic;

class Cma : public engine::EnginePair {
 protected:
  explicit Cma(std::uint64_t awake_max = onesided::kCarriedOutMax) : engine::EnginePair(true, awake_max) {}
  void SetUp() override {
    engine::EnginePair::SetUp();
    b_.pairs().publish_region(b_.key);
    join();
    for (std::size_t i = 0; i < a_.memory.size(); ++i) a_.memory[i] = static_cast<std::byte>(i * 7 >> 3);
  }
  /// Connects two new queue pairs, also after an error.
  void join(QpType type = QpType::rc) {
    for (EndOfPair* end : {&a_, &b_}) end->open(type);
    a_.connect(b_, now_);
    b_.connect(a_, now_);
    // The first request is a message; only then is b known to accept requests.
    b_.receive(1, b_.sge(0, 8));
    a_.send(1, a_.sge(8, 8), now_);
    ASSERT_EQ(wait_for(b_).opcode, WcOpcode::receive);
    ASSERT_EQ(wait_for(a_).status, WcStatus::success);
    for (int step = 0; step < 100; ++step) pass();
  }
  verbs::WorkCompletion wait_for(EndOfPair& end) {
    for (int step = 0; step < 100'000; ++step, pass())
      if (const auto some = end.completions(); !some.empty()) return some[0];
    ADD_FAILURE() << "no completion";
    return {.status = WcStatus::general_err};
  }
  void post(SendOpcode opcode, std::size_t from, std::uint32_t length, std::size_t to) {
    post(opcode, from, length, b_.at(to), b_.key);
  }
  void post(SendOpcode opcode, std::size_t from, std::uint32_t length, std::uint64_t address, std::uint32_t key) {
    const verbs::Sge sge = a_.sge(from, length);
    ASSERT_EQ(a_.post({.id = 9,
                       .sges = {&sge, 1},
                       .opcode = opcode,
                       .flags = verbs::send_flags::signaled,
                       .rkey = key,
                       .remote_addr = address,
                       .compare_add = 1},
                      now_),
              0);
  }
  bool is_same(std::size_t here, std::size_t there, std::size_t length) const {
    return std::memcmp(&a_.memory[here], &b_.memory[there], length) == 0;
  }
  std::uint64_t by_calls() const {
    return a_.pairs().counters().writes_by_calls + a_.pairs().counters().reads_by_calls;
  }
  std::uint64_t failed() const { return a_.pairs().counters().calls_failed; }
  void expect_write_through_the_ring(std::uint32_t length) {
    const std::uint64_t before = by_calls();
    post(SendOpcode::write, 100, length, 200);
    EXPECT_TRUE(a_.completions().empty());
    EXPECT_EQ(wait_for(a_).status, WcStatus::success);
    EXPECT_TRUE(is_same(100, 200, length));
    EXPECT_EQ(by_calls(), before);
  }
  onesided::OwnedRecords& owned() {
    return *reinterpret_cast<onesided::OwnedRecords*>(far_.engine->connections()->records());
  }
  shm::Connection& far_of_near() {
    return near_.engine->connections()->peer(near_.engine->connections()->find(engine::direct_place(2)));
  }
  RegionPlan plan() { return b_.pairs().regions().plan(b_.key); }

  EndOfPair a_{near_, kAll}, b_{far_, kAll};
};

TEST_F(Cma, AWriteAndAReadNeedNobodyAtTheTarget) {
  std::uint64_t done = 0;
  for (const std::uint32_t size : {1u, 4u, 7u, 8u, 63u, 4096u, 300'000u}) {
    std::ranges::fill(b_.memory, std::byte{0xAA});
    post(SendOpcode::write, 0, size, 1003);
    const auto written = a_.completions();
    ASSERT_EQ(written.size(), 1u) << "it is done at once";
    EXPECT_EQ(written[0].status, WcStatus::success);
    EXPECT_TRUE(is_same(0, 1003, size)) << "nobody has run there";
    EXPECT_EQ(b_.memory[1002], std::byte{0xAA});
    EXPECT_EQ(b_.memory[1003 + size], std::byte{0xAA});
    const std::array<verbs::Sge, 2> halves{a_.sge(500'000, size / 2), a_.sge(500'000 + size / 2, size - size / 2)};
    std::fill_n(&a_.memory[500'000], size, std::byte{0});
    ASSERT_EQ(a_.post({.id = 2,
                       .sges = halves,
                       .opcode = SendOpcode::read,
                       .flags = verbs::send_flags::signaled,
                       .rkey = b_.key,
                       .remote_addr = b_.at(1003)},
                      now_),
              0);
    const auto read = a_.completions();
    ASSERT_EQ(read.size(), 1u);
    EXPECT_EQ(read[0].status, WcStatus::success);
    EXPECT_EQ(read[0].opcode, WcOpcode::read);
    EXPECT_EQ(read[0].byte_len, size);
    EXPECT_TRUE(is_same(500'000, 1003, size));
    done += 2;
  }
  EXPECT_EQ(by_calls(), done);
  EXPECT_EQ(failed(), 0u);
}

// Of memory that is mapped, too.
TEST_F(Cma, ALongOneIsCarriedOutInTurns) {
  constexpr std::uint32_t kLong = CopyTurn::kBytes + (1 << 20);
  constexpr std::byte kSent{0x5A};
  std::vector<std::byte> from(kLong, kSent), outside(kLong), into(kLong);
  const auto add = [](EndOfPair& end, std::byte* memory, ArenaPlace arena = {}) {
    return end.pairs().regions().add({.base = memory,
                                      .length = kLong,
                                      .iova = reinterpret_cast<std::uintptr_t>(memory),
                                      .access = verbs::access::local_write | kAll,
                                      .domain = 1,
                                      .arena = arena});
  };
  const auto post_long = [&](SendOpcode opcode, std::vector<std::byte>& here, const std::byte* there,
                             std::uint32_t key) {
    const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(here.data()), kLong, add(a_, here.data())};
    ASSERT_EQ(a_.post({.sges = {&sge, 1},
                       .opcode = opcode,
                       .flags = verbs::send_flags::signaled,
                       .rkey = key,
                       .remote_addr = reinterpret_cast<std::uintptr_t>(there)},
                      now_),
              0);
  };
  const auto count = [](const std::byte* memory) {  // by the last bytes of pages
    std::uint32_t bytes = 0;
    for (std::uint32_t at = 4095; at < kLong; at += 4096) bytes += memory[at] == kSent ? 4096 : 0;
    return bytes;
  };
  std::byte* const shown = far_.engine->connections()->arena()->head() + sizeof(onesided::SharedTables);
  for (std::byte* const there : {outside.data(), shown}) {
    const std::uint64_t calls_before = by_calls();
    std::memset(there, 0, kLong);
    std::memset(into.data(), 0, kLong);
    const ArenaPlace place{0, there == shown ? kLong : 0, sizeof(onesided::SharedTables)};
    const std::uint32_t key = add(b_, there, place);
    b_.pairs().publish_region(key);
    post_long(SendOpcode::write, from, there, key);
    EXPECT_EQ(count(there), CopyTurn::kBytes);
    EXPECT_TRUE(a_.completions().empty());
    near_.engine->progress(now_);
    EXPECT_EQ(count(there), kLong);
    ASSERT_EQ(a_.completions().size(), 1U);
    post_long(SendOpcode::read, into, there, key);
    EXPECT_EQ(count(into.data()), CopyTurn::kBytes);
    near_.engine->progress(now_);
    EXPECT_EQ(count(into.data()), kLong);
    const auto done = a_.completions();
    ASSERT_EQ(done.size(), 1U);
    EXPECT_EQ(done[0].status, WcStatus::success);
    EXPECT_EQ(by_calls() - calls_before, there == shown ? 0U : 2U);
    // It is withdrawn in the middle: the target is asked, and refuses it.
    post_long(SendOpcode::write, from, there, key);
    ASSERT_TRUE(b_.pairs().regions().remove(key));
    b_.pairs().publish_region(key);
    EXPECT_EQ(wait_for(a_).status, WcStatus::rem_access_err);
    join();
  }
}

TEST_F(Cma, WhatIsNotRightIsAskedOfTheTargetWhoRefusesIt) {
  const std::vector<std::byte> before = b_.memory;
  const std::size_t end = b_.memory.size();
  const RegionPlan first = plan();
  const auto expect_refused = [&](SendOpcode opcode, std::uint64_t address, std::uint32_t key,
                                  WcStatus status = WcStatus::rem_access_err) {
    post(opcode, 0, 64, address, key);
    EXPECT_EQ(wait_for(a_).status, status);
    EXPECT_EQ(b_.state(), QpState::err);
    if (b_.pairs().regions().change(b_.key, first) == Status::ok) b_.pairs().publish_region(b_.key);
    join();
  };
  const auto change = [&](const RegionPlan& to) {
    ASSERT_EQ(b_.pairs().regions().change(b_.key, to), Status::ok);
    b_.pairs().publish_region(b_.key);
  };
  expect_refused(SendOpcode::write, b_.at(1000), b_.key + 1);
  expect_refused(SendOpcode::write, b_.at(1000), b_.key + 256);
  expect_refused(SendOpcode::write, b_.at(1000), onesided::SharedTables::kRegions << 8 | 1);
  expect_refused(SendOpcode::write, b_.at(end - 63), b_.key);
  expect_refused(SendOpcode::write, b_.at(0) - 1, b_.key);
  expect_refused(SendOpcode::read, b_.at(end), b_.key);
  expect_refused(SendOpcode::read, ~0ULL - 30, b_.key);
  b_.rights = verbs::access::remote_read;
  join();
  b_.rights = kAll;
  expect_refused(SendOpcode::write, b_.at(1000), b_.key, WcStatus::rem_inv_req_err);  // refused by the queue pair
  RegionPlan changed = first;
  changed.access = verbs::access::local_write | verbs::access::remote_write;
  change(changed);
  expect_refused(SendOpcode::read, b_.at(1000), b_.key);
  changed = first;
  changed.domain = 2;
  change(changed);
  expect_refused(SendOpcode::write, b_.at(1000), b_.key);
  EXPECT_EQ(by_calls(), 0u);
  post(SendOpcode::read, 0, 64, 1000);
  EXPECT_EQ(wait_for(a_).status, WcStatus::success);
  EXPECT_EQ(by_calls(), 1u);
  ASSERT_TRUE(b_.pairs().regions().remove(b_.key));
  b_.pairs().publish_region(b_.key);
  post(SendOpcode::write, 0, 64, 1000);
  EXPECT_EQ(wait_for(a_).status, WcStatus::rem_access_err);
  EXPECT_EQ(by_calls(), 1u);
  EXPECT_TRUE(std::equal(before.begin() + 8, before.end(), b_.memory.begin() + 8));
}

// Every peer can write to the shared tables. They must not lead an initiator to memory outside the arena that its owner
// has not published.
TEST_F(Cma, LiesInTheSharedTablesLeadNowhere) {
  std::mt19937_64 random(5);
  std::vector<std::byte> bystander(4096, std::byte{0x11});
  const std::uint64_t there = reinterpret_cast<std::uintptr_t>(bystander.data());
  const std::uint32_t far_key = b_.pairs().regions().add(
      {.base = bystander.data(), .length = 4096, .iova = there, .access = verbs::access::local_write, .domain = 1});
  b_.pairs().publish_region(far_key);
  onesided::SharedTables& tables = far_.tables();
  onesided::PublishCount lies;
  for (int step = 0; step < 400; ++step) {
    // A record of a region without rights, or of no region, that claims memory of the arena or all memory.
    const std::uint32_t key = random() % 2 == 0 ? far_key : b_.key + 256;
    onesided::SharedRegion lie{
        .key = key, .domain = 1, .access = ~0ULL, .iova = 0, .length = ~0ULL, .begin = 0, .end = ~0ULL};
    if (random() % 2 == 0) lie.offset = random() % 2 == 0 ? 1ULL << 40 : random();
    if (random() % 2 == 0) lie.end = random();
    tables.regions[key >> 8].publish(lie, lies);
    onesided::SharedPair pair;
    onesided::SharedRecord<onesided::SharedPair>& shown = tables.pairs[b_.number % onesided::SharedTables::kPairs];
    ASSERT_TRUE(shown.read(pair));
    pair.rights = ~0U;
    if (random() % 4 == 0) pair.domain = static_cast<std::uint32_t>(random());
    shown.publish(pair, lies);
    const bool is_write = random() % 2 == 0;
    std::fill_n(&a_.memory[0], 100, std::byte{0x22});
    post(is_write ? SendOpcode::write : SendOpcode::read, 0, 100, there + random() % 3996, key);
    EXPECT_EQ(wait_for(a_).status, WcStatus::rem_access_err);
    EXPECT_EQ(a_.memory[50], std::byte{0x22}) << "nothing was read";
    join();
  }
  EXPECT_EQ(by_calls(), 0u);
  EXPECT_TRUE(std::ranges::all_of(bystander, [](std::byte byte) { return byte == std::byte{0x11}; }));
}

TEST_F(Cma, ARecordThatIsBeingChangedIsNotBelieved) {
  using Record = onesided::SharedRecord<onesided::SharedRegion>;
  onesided::SharedRegion value;
  Record::Image one{};
  one[0] = 4;
  one[1] = 17;
  EXPECT_TRUE(Record::read(one, one, value));
  EXPECT_EQ(value.key, 17u);
  Record::Image other = one;
  other[0] = 5;
  EXPECT_FALSE(Record::read(one, other, value));
  EXPECT_FALSE(Record::read(other, other, value));
  other = one;
  other[7] = 1;
  EXPECT_FALSE(Record::read(one, other, value));
  // As if the owner had been stopped during a change.
  auto* const version = reinterpret_cast<std::atomic<std::uint64_t>*>(&owned().regions[b_.key >> 8]);
  version->fetch_add(1);
  expect_write_through_the_ring(100);
  version->fetch_add(1);
  post(SendOpcode::write, 0, 100, 0);
  EXPECT_EQ(by_calls(), 1u);
  EXPECT_EQ(failed(), 0u);
}

TEST_F(Cma, KeepsTheOrderWithWhatIsForTheProgram) {
  b_.receive(2, b_.sge(50'000, 64));
  post(SendOpcode::write, 0, 4096, 1000);
  a_.send(3, a_.sge(5000, 64), now_);
  EXPECT_TRUE(is_same(0, 1000, 4096));
  a_.memory[0] ^= std::byte{0xFF};
  post(SendOpcode::write, 0, 4096, 1000);
  EXPECT_FALSE(is_same(0, 1000, 4096)) << "not before what was posted ahead of it";
  EXPECT_EQ(by_calls(), 1u);
  EXPECT_EQ(wait_for(b_).wr_id, 2u);
  for (int step = 0; step < 1000; ++step) pass();
  EXPECT_TRUE(is_same(0, 1000, 4096));
  EXPECT_EQ(a_.completions().size(), 3u);
  b_.receive(3, b_.sge(50'000, 64));
  post(SendOpcode::write_imm, 0, 100, 9000);
  EXPECT_EQ(wait_for(b_).byte_len, 100u);
  EXPECT_TRUE(is_same(0, 9000, 100));
  EXPECT_EQ(wait_for(a_).status, WcStatus::success);
  post(SendOpcode::fetch_add, 0, 8, 16 - b_.at(0) % 8);
  EXPECT_TRUE(a_.completions().empty()) << "it is the owner's";
  a_.memory[100] ^= std::byte{0xFF};
  post(SendOpcode::write, 100, 100, 9000);
  EXPECT_FALSE(is_same(100, 9000, 100)) << "nor before what is under way";
  for (int step = 0; step < 1000; ++step) pass();
  EXPECT_TRUE(is_same(100, 9000, 100));
  EXPECT_EQ(a_.completions().size(), 2u);
  EXPECT_EQ(by_calls(), 1u);
}

// Unreliable requests complete before they are executed, so a later request could overtake one.
TEST_F(Cma, UnreliableOnesTakeTheRing) {
  join(QpType::uc);
  post(SendOpcode::write, 100, 64, 200);
  EXPECT_FALSE(is_same(100, 200, 64));
  EXPECT_EQ(wait_for(a_).status, WcStatus::success);
  for (int step = 0; step < 100; ++step) pass();
  EXPECT_TRUE(is_same(100, 200, 64));
  EXPECT_EQ(by_calls(), 0u);
}

// An owner that withdraws memory waits for read sections (verbs/direct_test.cpp tests that). This test reads the word
// that announces one.
TEST_F(Cma, WhoeverIsAtItSaysSo) {
  const std::atomic<std::uint64_t>& at = far_of_near().own->at;
  const auto address = reinterpret_cast<std::uintptr_t>(&at);
  auto* const base = std::bit_cast<std::byte*>(address);
  const std::uint32_t key =
      b_.pairs().regions().add({.base = base, .length = 8, .iova = address, .access = kAll, .domain = 1});
  b_.pairs().publish_region(key);
  ASSERT_EQ(at.load(), 0u);
  post(SendOpcode::read, 0, 8, address, key);
  EXPECT_EQ(by_calls(), 1u);
  std::uint64_t meanwhile = 0;
  std::memcpy(&meanwhile, &a_.memory[0], 8);
  EXPECT_TRUE(shm::Withdrawn::region(key >> 8).is_used(meanwhile));
  EXPECT_TRUE(shm::Withdrawn::pair(b_.handle.index).is_used(meanwhile));
  EXPECT_EQ(at.load(), 0u);
}

TEST_F(Cma, AProcessThatIsNoMoreTheSameIsReachedThroughTheRing) {
  auto* const nonce = reinterpret_cast<shm::Nonce*>(far_.engine->connections()->records() - shm::Identity::kRecordsAt);
  *nonce = {1, 2};
  expect_write_through_the_ring(4096);
  EXPECT_EQ(failed(), 1u);
  EXPECT_EQ(far_of_near().process.denial(), shm::CrossMemory::Denial::not_itself);
  expect_write_through_the_ring(8192);
  EXPECT_EQ(failed(), 1u) << "it is not tried again";
}

TEST_F(Cma, WhatFailsHalfWayIsAskedFor) {
  constexpr std::size_t kPage = 4096;
  auto* const half =
      static_cast<std::byte*>(::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ::munmap(half + kPage, kPage);
  onesided::SharedRegion region;
  ASSERT_TRUE(owned().regions[b_.key >> 8].read(region));
  region.offset = reinterpret_cast<std::uintptr_t>(half) - 200;  // so that part of it is not mapped
  onesided::PublishCount lies;
  owned().regions[b_.key >> 8].publish(region, lies);
  expect_write_through_the_ring(2 * kPage);
  EXPECT_EQ(failed(), 1u);
  std::memset(&a_.memory[100], 0, 2 * kPage);
  post(SendOpcode::read, 100, 2 * kPage, 200);
  EXPECT_EQ(wait_for(a_).status, WcStatus::success);
  EXPECT_TRUE(is_same(100, 200, 2 * kPage));
  EXPECT_EQ(failed(), 2u);
  EXPECT_EQ(by_calls(), 0u);
  ::munmap(half, kPage);
}

TEST_F(Cma, WhatMayNotBeWrittenHereIsNotRead) {
  const std::uint32_t key = a_.pairs().regions().add(
      {.base = a_.memory.data(), .length = a_.memory.size(), .iova = a_.at(0), .access = 0, .domain = 1});
  const verbs::Sge to{a_.at(0), 100, key};
  const std::vector<std::byte> before = a_.memory;
  ASSERT_EQ(
      a_.post({.id = 9, .sges = {&to, 1}, .opcode = SendOpcode::read, .rkey = b_.key, .remote_addr = b_.at(0)}, now_),
      0);
  EXPECT_EQ(wait_for(a_).status, WcStatus::loc_prot_err);
  EXPECT_EQ(a_.memory, before);
  EXPECT_EQ(by_calls(), 0u);
}

/// An owner that polls is reached faster through the ring.
class CmaAsleep : public Cma {
 protected:
  CmaAsleep() : Cma(0) {}
};

TEST_F(CmaAsleep, OnlyWhoeverDoesNotLookIsSpared) {
  expect_write_through_the_ring(4096);
  ASSERT_TRUE(far_.engine->connections()->watch().arm());
  post(SendOpcode::write, 100, 5000, 200);
  EXPECT_TRUE(is_same(100, 200, 5000));
  EXPECT_EQ(a_.completions().size(), 1u);
  EXPECT_EQ(by_calls(), 1u);
}

}  // namespace
}  // namespace fairlead::qp
