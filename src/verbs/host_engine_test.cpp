// Queue pairs of a host engine that ends, and of an application that does.

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "host/listing.hpp"
#include "verbs/pair_for_tests.hpp"

namespace fairlead::verbs {
namespace {

#ifndef FAIRLEAD_THREAD_SANITIZER

constexpr std::uint64_t kPendingSends = 10, kPendingReceives = 20;

bool becomes_readable(int descriptor) {
  pollfd one{descriptor, POLLIN, 0};
  return ::poll(&one, 1, 10'000) == 1;
}

/// The posted requests must end once and in order, because the host engine has ended.
void expect_flushed(const std::vector<WorkCompletion>& all, WcOpcode opcode, std::uint64_t first, std::uint64_t count) {
  std::uint64_t next = first;
  for (const WorkCompletion& each : all) {
    if (each.opcode != opcode || each.status == WcStatus::success) continue;
    EXPECT_EQ(each.wr_id, next++);
    EXPECT_EQ(each.status, WcStatus::wr_flush_err);
    EXPECT_EQ(static_cast<Cause>(each.vendor_err), Cause::host_ended);
  }
  EXPECT_EQ(next, first + count);
}

// The other end posts no receives, so sends wait.
TEST(EndOfHostEngine, EndsAllThatIsPending) {
  host::DaemonForTests daemon;
  std::optional<Side> alone(std::in_place, std::uint8_t{5}, Road::host, nullptr, daemon.file());
  Side& side = *alone;
  auto asks = made(make_pair_at(side, QpType::rc, {.max_send_wr = 32, .max_recv_wr = 32}));
  auto other = made(make_pair_at(side, QpType::rc, {.max_send_wr = 32, .max_recv_wr = 32}));
  const PairOptions options;
  move_up(asks, attributes_for(options, side.device, other.number(), 1, 2), QpState::rts);
  move_up(other, attributes_for(options, side.device, asks.number(), 2, 1), QpState::rts);
  const Sge piece = side.sge(0, 100);
  for (std::uint64_t i = 0; i < kPendingSends; ++i) ASSERT_EQ(asks.post_send({.id = i, .sges = {&piece, 1}}), 0);
  for (std::uint64_t i = 0; i < kPendingReceives; ++i)
    ASSERT_EQ(asks.post_receive({.id = 100 + i, .sges = {&piece, 1}}), 0);
  ASSERT_EQ(side.queue.request_notify(false), 0);
  daemon.end();

  // Sleepers are woken.
  ASSERT_TRUE(becomes_readable(side.channel.descriptor()));
  ASSERT_TRUE(becomes_readable(side.context.async_descriptor()));
  const auto all = collect(side, side, kPendingSends + kPendingReceives);
  expect_flushed(all, WcOpcode::send, 0, kPendingSends);
  expect_flushed(all, WcOpcode::receive, 100, kPendingReceives);
  std::ptrdiff_t fatal = 0;  // one event of each queue pair, which may end one after the other
  while (fatal < 2 && becomes_readable(side.context.async_descriptor()))
    fatal += std::ranges::count(Connected::events(side), AsyncEventType::qp_fatal);
  EXPECT_EQ(fatal, 2);
  EXPECT_EQ(asks.state(), QpState::err);
  // Later posts end as well, and calls are refused with the reason.
  ASSERT_EQ(asks.post_send({.id = 500, .sges = {&piece, 1}}), 0);
  expect_flushed(collect(side, side, 1), WcOpcode::send, 500, 1);
  const auto refused = make_pair_at(side);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().system_errno, EIO);
  EXPECT_NE(refused.error().message.find("fairleadd"), std::string::npos) << refused.error().message;
  EXPECT_TRUE(asks.destroy());
  EXPECT_TRUE(other.destroy());
  std::memset(side.memory.data(), 7, side.memory.size());
  EXPECT_TRUE(side.region.remove());
  EXPECT_EQ(side.memory[Side::kMemory - 1], std::byte{7}) << "the memory is the program's again";
}

// Each refusal names its reason, and what works instead.
TEST(HostEngine, SaysWhyItDoesNotServeSomething) {
  Side side(1, Road::host);
  const auto expect_reason = [](const auto& refused, const char* reason) {
    ASSERT_FALSE(refused) << reason;
    EXPECT_EQ(refused.error().system_errno, EOPNOTSUPP);
    EXPECT_NE(refused.error().message.find(reason), std::string::npos) << refused.error().message;
    EXPECT_NE(refused.error().message.find("run without --host"), std::string::npos) << refused.error().message;
  };
  expect_reason(MemoryRegion::null(side.domain), "null regions: its regions are parts of shared memory");
  const Registration everything{
      .address = nullptr, .length = UINT64_MAX, .access = access::local_write | access::on_demand, .iova = {}};
  expect_reason(MemoryRegion::add(side.domain, everything), "the whole address space: it can only access memory that");
  expect_reason(make_pair_at(side, QpType::xrc_recv), "XRC: requests in its rings");
  expect_reason(make_pair_at(side, QpType::xrc_send), "XRC: requests in its rings");
  auto datagrams = made(make_pair_at(side, QpType::ud));
  move_up(datagrams, attributes_for({}, side.device, 0, 1, 1), QpState::rts);
  Gid group{0xFF, 0x0E, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 239, 1, 2, 3};
  expect_reason(datagrams.attach_multicast(group), "multicast groups: it could not hand their sockets over");
}

/// In a child: connects a queue pair to the parent's, reports its number, and receives until it is killed.
[[noreturn]] void receive_until_killed(int numbers_in, int numbers_out) {
  base::is_child_of_test = true;
  Side side(5, Road::host);
  auto pair = made(make_pair_at(side, QpType::rc, {.max_send_wr = 8, .max_recv_wr = 64}));
  std::uint32_t parents = 0;
  const std::uint32_t own = pair.number();
  if (::write(numbers_out, &own, sizeof own) != sizeof own) ::_exit(1);
  if (::read(numbers_in, &parents, sizeof parents) != sizeof parents) ::_exit(2);
  move_up(pair, attributes_for({}, side.device, parents, 1, 1), QpState::rts);
  const Sge to = side.sge(0, 4096);
  for (std::uint64_t i = 0; i < 64; ++i)
    if (pair.post_receive({.id = i, .sges = {&to, 1}}) != 0) ::_exit(3);
  if (::write(numbers_out, &own, sizeof own) != sizeof own) ::_exit(4);  // reports that it is ready
  for (;;) (void)collect(side, side, 1);
}

TEST(EndOfApplication, DestroysItsQueuePairsAndNobodyElses) {
  host::DaemonForTests& daemon = host::DaemonForTests::shared();
  int to_child[2] = {}, from_child[2] = {};
  ASSERT_EQ(::pipe(to_child), 0);
  ASSERT_EQ(::pipe(from_child), 0);
  const pid_t child = ::fork();
  if (child == 0) receive_until_killed(to_child[0], from_child[1]);

  Side side(5, Road::host);
  PairOptions options;
  options.timeout = 14;
  options.retry_cnt = 2;
  auto towards = made(make_pair_at(side, QpType::rc, options.capacity));
  Connected others(Road::host);
  std::uint32_t childs = 0;
  const std::uint32_t own = towards.number();
  ASSERT_EQ(::read(from_child[0], &childs, sizeof childs), ssize_t{sizeof childs});
  ASSERT_EQ(::write(to_child[1], &own, sizeof own), ssize_t{sizeof own});
  ASSERT_EQ(::read(from_child[0], &childs, sizeof childs), ssize_t{sizeof childs});
  move_up(towards, attributes_for(options, side.device, childs, 1, 1), QpState::rts);
  const Sge from = side.sge(0, 1000);
  const SendRequest request{.id = 1, .sges = {&from, 1}, .flags = send_flags::signaled};
  ASSERT_EQ(towards.post_send(request), 0);
  const auto first = collect(side, side, 1);
  ASSERT_EQ(first.size(), 1U);
  ASSERT_EQ(first[0].status, WcStatus::success);

  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const auto is_attached = [&] {
    const auto all = host::list_attached(daemon.file());
    return !all || std::ranges::find(*all, child, &host::AttachedFact::process) != all->end();
  };
  for (int i = 0; i < 10'000 && is_attached(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_FALSE(is_attached());
  ASSERT_EQ(towards.post_send(request), 0);
  const auto second = collect(side, side, 1);
  ASSERT_EQ(second.size(), 1U);
  EXPECT_EQ(second[0].status, WcStatus::retry_exc_err);
  EXPECT_EQ(static_cast<Cause>(second[0].vendor_err), Cause::no_such_queue_pair) << describe(second[0]);
  EXPECT_EQ(towards.state(), QpState::err);

  const Sge to = others.b.sge(0, 1000), good = others.a.sge(0, 1000);
  ASSERT_EQ(others.pb.post_receive({.id = 2, .sges = {&to, 1}}), 0);
  ASSERT_EQ(others.pa.post_send({.id = 3, .sges = {&good, 1}, .flags = send_flags::signaled}), 0);
  EXPECT_EQ(others.one_at_b().status, WcStatus::success);
  EXPECT_EQ(others.one_at_a().status, WcStatus::success);
  for (const int end : {to_child[0], to_child[1], from_child[0], from_child[1]}) ::close(end);
}

// Neighbours on the heap share pages, and two contexts register them.
TEST(RegisteredMemory, OverlapsAndIsTheProgramsAgain) {
  Side a(5, Road::host), b(6, Road::host);
  std::vector<std::byte> bytes(40'000, std::byte{1});
  const auto part = [&](const Side& side, std::size_t at, std::size_t length) {
    return made(MemoryRegion::add(
        side.domain, {.address = bytes.data() + at, .length = length, .access = Side::kAllRights, .iova = {}}));
  };
  auto second = part(b, 10'100, 9'000), first = part(a, 100, 10'000), whole = part(a, 0, bytes.size());
  auto pa = made(make_pair_at(a)), pb = made(make_pair_at(b));
  move_up(pa, attributes_for({}, b.device, pb.number(), 1, 1), QpState::rts);
  move_up(pb, attributes_for({}, a.device, pa.number(), 1, 1), QpState::rts);
  a.fill(0, 9'000, 5);
  const Sge from = a.sge(0, 9'000);
  ASSERT_EQ(pa.post_send({.id = 1,
                          .sges = {&from, 1},
                          .opcode = SendOpcode::write,
                          .flags = send_flags::signaled,
                          .rkey = second.rkey(),
                          .remote_addr = reinterpret_cast<std::uintptr_t>(bytes.data() + 10'100)}),
            0);
  const auto written = collect(a, b, 1);
  ASSERT_EQ(written.size(), 1U);
  EXPECT_EQ(written[0].status, WcStatus::success) << describe(written[0]);
  EXPECT_EQ(std::memcmp(bytes.data() + 10'100, a.memory.data(), 9'000), 0);
  EXPECT_EQ(bytes[10'099], std::byte{1});
  EXPECT_EQ(bytes[19'100], std::byte{1});
  const Sge to = b.sge(0, 40'000);
  const Sge out = {reinterpret_cast<std::uintptr_t>(bytes.data()), 40'000, whole.lkey()};
  ASSERT_EQ(pb.post_receive({.id = 2, .sges = {&to, 1}}), 0);
  ASSERT_EQ(pa.post_send({.id = 3, .sges = {&out, 1}, .flags = send_flags::signaled}), 0);
  ASSERT_EQ(collect(b, a, 1).size(), 1U);
  EXPECT_EQ(std::memcmp(b.memory.data(), bytes.data(), bytes.size()), 0);
  for (MemoryRegion* region : {&second, &first, &whole}) EXPECT_TRUE(region->remove());
  bytes[20'000] = std::byte{9};
  EXPECT_EQ(bytes[0], std::byte{1});
}

TEST(RegisteredMemory, OfAProgramWithThreadsHasToBeAllocated) {
  Side side(5, Road::host);
  std::vector<std::byte> bytes(100'000);
  const Registration registration{.address = bytes.data(), .length = bytes.size(), .access = 0, .iova = {}};
  std::atomic<bool> ends{false};
  std::thread thread([&] { ends.wait(false); });
  const auto refused = MemoryRegion::add(side.domain, registration);
  EXPECT_FALSE(refused);
  if (!refused) {
    EXPECT_EQ(refused.error().system_errno, EOPNOTSUPP);
    EXPECT_NE(refused.error().message.find("MemoryRegion::allocate()"), std::string::npos) << refused.error().message;
  }
  EXPECT_TRUE(MemoryRegion::allocate(side.domain, bytes.size(), Side::kAllRights));
  ends = true;
  ends.notify_one();
  thread.join();
}

#endif

}  // namespace
}  // namespace fairlead::verbs
