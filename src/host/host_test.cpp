// The host engine with well-behaved applications: its end, its successor, its limits. The conformance suites test the
// operations; they run over the host engine as over any path.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/child_for_tests.hpp"
#include "host/attach.hpp"
#include "host/host_core.hpp"
#include "host/host_for_tests.hpp"
#include "tests/environment.hpp"

namespace fairlead::host {
namespace {

using engine::Completion;
using engine::PortHandle;
using std::chrono::milliseconds;

class Host : public ::testing::Test {
 protected:
  static base::SocketAddress loopback(std::uint16_t port = 0) {
    return base::SocketAddress::from_ip("127.0.0.1", port).value();
  }
  engine::EngineOptions options(std::string_view core = "host") const {
    engine::EngineOptions options;
    EXPECT_TRUE(options.set("core", core));
    EXPECT_TRUE(options.set("host", host_->file()));
    return options;
  }
  std::shared_ptr<HostCore> attach(std::uint16_t port = 0) const {
    return HostCore::attach(host_->file(), loopback(port), options()).value();
  }
  static Status receive(HostCore& core, PortHandle port, std::span<const iovec> memory, std::uint64_t cookie) {
    EXPECT_EQ(core.reserve_events(port, 1), Status::ok);
    engine::OperationHandle operation;
    return core.post_receive(port, {.memory = memory, .size_min = 1, .cookie = cookie}, operation);
  }
  static Status send(HostCore& core, PortHandle port, std::uint32_t to, std::span<const iovec> memory,
                     std::uint64_t cookie) {
    EXPECT_EQ(core.reserve_events(port, 1), Status::ok);
    engine::OperationHandle operation;
    return core.send(port, {.to = {core.address(), to}, .part = {memory, memory[0].iov_len, cookie}}, operation);
  }
  static Completion next(HostCore& core, PortHandle port) {
    Completion completion;
    while (!core.next_event(port, completion)) core.wait(port, base::kNever);
    core.release_events(port, 1);
    return completion;
  }

  std::unique_ptr<HostForTests> host_ = std::make_unique<HostForTests>();
  std::array<std::byte, 100> bytes_{};
  std::array<iovec, 1> memory_{iovec{bytes_.data(), bytes_.size()}};
};

TEST_F(Host, ItsEndEndsWhatIsPendingAndWakesWhoWaits) {
  const auto core = attach();
  const PortHandle port = core->open_port(7).value();
  ASSERT_EQ(receive(*core, port, memory_, 11), Status::ok);
  ASSERT_EQ(receive(*core, port, memory_, 12), Status::ok);
  std::thread ending([&] { host_->end(); });
  std::array<Completion, 3> all;
  std::size_t count = 0;
  while (count < 2) {
    core->wait(port, base::kNever);
    count += core->next_events(port, std::span(all).subspan(count));
  }
  ending.join();
  EXPECT_EQ(all[0].cookie + all[1].cookie, 23U);
  // A host engine that stops cancels the operations, but delivers no events for them. So the application reports
  // `restarted`, as after a kill.
  for (const Completion& one : std::span(all).first(2))
    EXPECT_TRUE(one.status == Status::restarted && one.is_final) << to_string(one.status);
  EXPECT_TRUE(core->has_ended());
  engine::OperationHandle operation;
  ASSERT_EQ(core->reserve_events(port, 1), Status::ok);
  EXPECT_EQ(core->post_receive(port, {.memory = memory_, .size_min = 1}, operation), Status::restarted);
  EXPECT_FALSE(core->has_event(port));
  EXPECT_FALSE(core->wait(port, base::MonotonicClock::now() + milliseconds(1)));
  core->close_port(port);
}

TEST_F(Host, ItsEndEndsAWaitForNothing) {
  const auto core = attach();
  const PortHandle port = core->open_port(7).value();
  std::thread ending([&] { host_->end(); });
  const auto deadline = base::MonotonicClock::now() + std::chrono::seconds(20);  // ends a failing test only
  EXPECT_FALSE(core->wait(port, deadline));
  EXPECT_LT(base::MonotonicClock::now(), deadline);
  EXPECT_TRUE(core->has_ended());
  ending.join();
  core->close_port(port);
}

TEST_F(Host, WhoeverAttachesAfterItsEndGetsItsSuccessor) {
  const auto options_now = options();
  const auto first = attach_host(host_->file(), loopback(), options_now).value();
  EXPECT_EQ(attach_host(host_->file(), loopback(), options_now).value(), first);
  const PortHandle port = first->open_port(7).value();
  host_ = nullptr;
  while (!static_cast<HostCore&>(*first).has_ended()) first->wait(port, base::MonotonicClock::now() + milliseconds(1));
  const auto nobody = attach_host(options_now.host(), loopback(), options_now);
  ASSERT_FALSE(nobody.has_value());
  EXPECT_EQ(nobody.error().status, Status::refused);
  EXPECT_NE(nobody.error().message.find("start fairleadd"), std::string::npos) << nobody.error().message;
  host_ = std::make_unique<HostForTests>();
  const auto second = attach_host(host_->file(), loopback(), options()).value();
  EXPECT_NE(second->epoch(), first->epoch());
  EXPECT_TRUE(second->open_port(7).has_value());
}

TEST_F(Host, AChoiceOfAutoTakesItWhereItListens) {
  const auto own = host::attach(loopback(), options("embedded"), Use::messages).value();
  EXPECT_EQ(dynamic_cast<HostCore*>(own.get()), nullptr);
  const auto hosts = host::attach(loopback(), options("auto"), Use::messages).value();
  EXPECT_NE(dynamic_cast<HostCore*>(hosts.get()), nullptr);
  const auto pairs = host::attach(loopback(), options("auto"), Use::queue_pairs).value();
  EXPECT_EQ(dynamic_cast<HostCore*>(pairs.get()), nullptr);
  const auto hosts_pairs = host::attach(loopback(), options("host"), Use::queue_pairs).value();
  EXPECT_NE(dynamic_cast<HostCore*>(hosts_pairs.get()), nullptr);
  const auto active = host::attach(loopback(), options("auto"), Use::active_messages).value();
  EXPECT_EQ(dynamic_cast<HostCore*>(active.get()), nullptr);
  const auto hosts_active = host::attach(loopback(), options("host"), Use::active_messages).value();
  EXPECT_NE(dynamic_cast<HostCore*>(hosts_active.get()), nullptr);
  host_->end();
  const auto fallen_back = host::attach(loopback(), options("auto"), Use::messages).value();
  EXPECT_EQ(dynamic_cast<HostCore*>(fallen_back.get()), nullptr);
}

TEST_F(Host, TwoApplicationsShareItsEngineAndItsPorts) {
  const auto one = attach(), other = attach();
  EXPECT_EQ(one->address(), other->address());
  const PortHandle port = one->open_port(7).value();
  const auto taken = other->open_port(7);
  ASSERT_FALSE(taken.has_value());
  EXPECT_EQ(taken.error().status, Status::in_use);
  one->close_port(port);
  EXPECT_TRUE(other->open_port(7).has_value());  // free when close_port() has returned
}

TEST_F(Host, AMessageGoesFromOneApplicationToAnotherWherevertheBytesLie) {
  const auto one = attach(), other = attach();
  const PortHandle from = one->open_port(1).value(), to = other->open_port(2).value();
  const auto shared = one->allocate_shared()(100);
  std::memset(shared.get(), 0x5a, 100);
  std::memset(bytes_.data(), 0xa5, bytes_.size());
  const iovec pieces[] = {{bytes_.data(), 40}, {bytes_.data() + 40, 60}};
  const iovec whole[] = {{shared.get(), 100}};
  for (const std::span<const iovec> memory : {std::span<const iovec>(pieces), std::span<const iovec>(whole)}) {
    std::array<std::byte, 200> inbox{};
    const iovec parts[] = {{inbox.data(), 33}, {inbox.data() + 100, 67}};
    ASSERT_EQ(receive(*other, to, parts, 5), Status::ok);
    engine::OperationHandle operation;
    ASSERT_EQ(one->reserve_events(from, 1), Status::ok);
    ASSERT_EQ(one->send(from, {.to = {other->address(), 2}, .part = {memory, 100, 6}}, operation), Status::ok);
    const Completion got = next(*other, to), sent = next(*one, from);
    EXPECT_EQ(got.cookie, 5U);
    EXPECT_EQ(got.length, 100U);
    EXPECT_EQ(got.source, (engine::RemotePort{one->address(), 1}));
    EXPECT_EQ(sent.cookie, 6U);
    EXPECT_EQ(sent.status, Status::ok);
    const std::byte expected = static_cast<const std::byte*>(memory[0].iov_base)[0];
    for (std::size_t i = 0; i < 200; ++i)
      ASSERT_EQ(inbox[i], i < 33 || (i >= 100 && i < 167) ? expected : std::byte{}) << i;
  }
}

TEST_F(Host, PortsAndEventsAreBounded) {
  const auto core = attach();
  std::vector<PortHandle> ports;
  for (std::uint32_t number = 1; number <= kPortsMax; ++number) ports.push_back(core->open_port(number).value());
  const auto beyond = core->open_port(kPortsMax + 1);
  ASSERT_FALSE(beyond.has_value());
  EXPECT_EQ(beyond.error().status, Status::no_memory);
  EXPECT_EQ(core->reserve_events(ports[0], kEventsMax), Status::ok);
  EXPECT_EQ(core->reserve_events(ports[0], 1), Status::no_memory);
  for (const PortHandle port : ports) core->close_port(port);
}

TEST_F(Host, TellsWhoIsAttached) {
  EXPECT_TRUE(list_attached(host_->file()).value().empty());
  const auto one = attach(), other = attach();
  const PortHandle port = one->open_port(1).value();
  ASSERT_EQ(receive(*one, port, memory_, 1), Status::ok);
  const auto all = list_attached(host_->file()).value();
  ASSERT_EQ(all.size(), 2U);
  for (const AttachedFact& fact : all) {
    EXPECT_EQ(fact.process, ::getpid());
    EXPECT_EQ(fact.user, ::getuid());
    EXPECT_EQ(fact.engine, one->address());
  }
  EXPECT_EQ(all[0].ports + all[1].ports, 1U);
  EXPECT_EQ(all[0].operations + all[1].operations, 1U);
  host_->end();
  EXPECT_EQ(list_attached(host_->file()).error().status, Status::refused);
}

TEST_F(Host, TellsOfAllWhoAreAttachedAlthoughAnAnswerHasRoomForFewer) {
  std::vector<std::shared_ptr<HostCore>> cores;
  for (int i = 0; i < 5; ++i) cores.push_back(attach());
  EXPECT_EQ(list_attached(host_->file(), 2).value().size(), 5u);
  EXPECT_EQ(list_attached(host_->file(), 5).value().size(), 5u);
}

TEST(ClientOperations, AreBoundedAndAnOldNameFindsNone) {
  ClientOperations operations;
  ClientOperation* const first = operations.take();
  const std::uint64_t name = ClientOperations::name_of(*first);
  while (operations.take() != nullptr) {
  }
  EXPECT_EQ(operations.find(name), first);
  EXPECT_NE(operations.find(name + (kOperationsMax - 1)), nullptr);
  EXPECT_EQ(operations.find(name + kOperationsMax), nullptr);
  operations.release(*first);
  EXPECT_EQ(operations.find(name), nullptr);
  EXPECT_EQ(operations.take(), first);
  EXPECT_EQ(operations.find(name), nullptr);
}

// The ring holds more requests than the host engine takes in one turn, and fills up repeatedly.
TEST_F(Host, ManyMessagesArriveInOrderAlthoughTheRingIsFullMeanwhile) {
  constexpr std::uint64_t kMessages = 20000, kBuffers = 512;
  const auto one = attach(), other = attach();
  const PortHandle from = one->open_port(1).value(), to = other->open_port(2).value();
  std::vector<std::uint64_t> inbox(kBuffers);
  std::vector<iovec> pieces(kBuffers);
  ASSERT_EQ(other->reserve_events(to, kBuffers), Status::ok);
  const auto post = [&](std::uint64_t slot) {
    pieces[slot] = {&inbox[slot], 8};
    engine::OperationHandle operation;
    ASSERT_EQ(other->post_receive(to, {.memory = {&pieces[slot], 1}, .size_min = 8, .cookie = slot}, operation),
              Status::ok);
  };
  for (std::uint64_t slot = 0; slot < kBuffers; ++slot) post(slot);
  ASSERT_EQ(one->reserve_events(from, kBuffers), Status::ok);
  std::uint64_t sent = 0, ended = 0, taken = 0;
  Completion completion;
  while (taken < kMessages) {
    while (sent < kMessages && sent - std::min(taken, ended) < kBuffers) {
      const iovec memory{&sent, 8};
      engine::OperationHandle operation;
      const Status status = one->send(from, {.to = {other->address(), 2}, .part = {{&memory, 1}, 8, 1}}, operation);
      if (status != Status::ok) {
        ASSERT_EQ(status, Status::again);
        break;
      }
      ++sent;
    }
    while (one->next_event(from, completion)) {
      ASSERT_EQ(completion.status, Status::ok);
      ++ended;
    }
    while (other->next_event(to, completion)) {
      ASSERT_EQ(inbox[completion.cookie], taken++);
      post(completion.cookie);
    }
  }
  while (ended < kMessages) {
    one->wait(from, base::kNever);
    while (one->next_event(from, completion)) ++ended;
  }
  EXPECT_EQ(other->dropped_no_buffer(to), 0U);
  one->close_port(from);
  other->close_port(to);
}

// The child of a fork releases its copy of a buffer. The pages belong to the parent, which still uses them.
TEST_F(Host, AChildsCopyOfABufferLeavesItsPagesAlone) {
  const auto core = attach();
  auto shared = core->allocate_shared()(8192);
  std::memset(shared.get(), 0x5a, 8192);
  EXPECT_EQ(base::exit_of_child([&] {
              shared.reset();
              return 0;
            }),
            0);
  EXPECT_EQ(shared.get()[4096], std::byte{0x5a});
}

// A nudge may arrive after its sleeper has awoken. An application that only polls never reads it.
TEST_F(Host, ItsEndIsSeenBehindANudgeThatNobodyTook) {
  const auto core = attach();
  const PortHandle port = core->open_port(7).value();
  const auto shared = core->allocate_shared()(4096);
  // This is the first allocation, so it begins behind the head.
  auto& page = *reinterpret_cast<SharedPage*>(shared.get() - Layout::head_bytes());
  page.reply.caller.sleeping.store(1);
  ASSERT_EQ(send(*core, port, 7, memory_, 1), Status::ok);
  while (page.reply.caller.sleeping.load() != 0) std::this_thread::yield();
  host_->end();
  for (int i = 0; i < 100'000 && !core->has_ended(); ++i) core->progress();
  EXPECT_TRUE(core->has_ended());
  core->close_port(port);
}

// One thread reads nudges and another reads answers from the same socket.
TEST_F(Host, NoThreadTakesTheAnswerOfAnother) {
  auto settings = options();
  ASSERT_TRUE(settings.set("wait", "sleep"));
  const auto core = HostCore::attach(host_->file(), loopback(), settings).value();
  const PortHandle port = core->open_port(7).value();
  std::atomic<bool> is_over{false};
  std::thread posts([&] {
    while (!is_over) {
      ASSERT_EQ(receive(*core, port, memory_, 1), Status::ok);
      ASSERT_EQ(send(*core, port, 7, memory_, 2), Status::ok);
      next(*core, port);
      next(*core, port);
    }
  });
  std::string told;
  for (int i = 0; i < 500 && told.empty(); ++i) told = core->describe_peer(loopback(9));
  is_over = true;
  posts.join();
  EXPECT_EQ(told, "");
  core->close_port(port);
}

TEST_F(Host, AUserWhoIsNotLetInIsToldHow) {
  const std::filesystem::path folder = std::filesystem::path(host_->file()).parent_path();
  std::filesystem::permissions(folder, std::filesystem::perms::none);
  const engine::EngineOptions settings = options();
  EXPECT_EQ(base::exit_of_child([&] {
              if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) return 1;
              const auto refused = HostCore::attach(settings.host(), loopback(), settings);
              const std::string remedy = "--allow-user " + std::to_string(::geteuid());
              return !refused && refused.error().message.find(remedy) != std::string::npos ? 0 : 2;
            }),
            0);
  std::filesystem::permissions(folder, std::filesystem::perms::owner_all);
}

TEST_F(Host, AFileThatIsNoSocketStays) {
  const std::string file = host_->file() + "-no-more";
  std::ofstream(file) << "somebody's";
  const auto refused = Service::open({.file = file, .engine = {}});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().system_errno, EEXIST) << refused.error().message;
  EXPECT_TRUE(std::filesystem::is_regular_file(file));
  for (const std::string relative : {"", "host"}) {
    EXPECT_EQ(Service::open({.file = relative, .engine = {}}).error().status, Status::invalid);
    EXPECT_EQ(Service::check({.file = relative, .engine = {}}).error().status, Status::invalid);
    EXPECT_EQ(HostCore::attach(relative, loopback(), options()).error().status, Status::invalid);
  }
}

TEST_F(Host, AnEngineThatNobodyUsesMakesRoomForAnother) {
  host_ = std::make_unique<HostForTests>(ServiceOptions{.file = {}, .engines_max = 1, .engine = {}});
  auto one = attach();
  const auto elsewhere = base::SocketAddress::from_ip("127.0.0.2", 0).value();
  EXPECT_EQ(HostCore::attach(host_->file(), elsewhere, options()).error().status, Status::no_memory);
  one.reset();
  while (host_->service().applications() > 0) std::this_thread::yield();
  EXPECT_TRUE(HostCore::attach(host_->file(), elsewhere, options()).has_value());
}

TEST_F(Host, WhoeverNamesNoPortSharesAnEngine) {
  ServiceOptions narrow{.applications_max = 2, .engines_max = 1};
  ASSERT_TRUE(narrow.engine.set("operations_max", "64"));
  host_ = std::make_unique<HostForTests>(std::move(narrow));
  const auto greedy = attach();
  auto late = attach();  // at the limit of engines, but theirs exists
  EXPECT_EQ(late->address(), greedy->address());
  const auto port = greedy->open_port(1).value();
  for (std::uint64_t cookie = 0; cookie < 64; ++cookie) EXPECT_EQ(receive(*greedy, port, memory_, cookie), Status::ok);
  std::uint32_t taken = 64;
  for (Completion completion; greedy->next_event(port, completion);) --taken;
  EXPECT_EQ(taken, 16u + 16u) << "guaranteed, and half of what is common";
  // The engine stays while one of them uses it.
  late.reset();
  while (host_->service().applications() > 1) std::this_thread::yield();
  const auto elsewhere = base::SocketAddress::from_ip("127.0.0.2", 0).value();
  EXPECT_EQ(HostCore::attach(host_->file(), elsewhere, options()).error().status, Status::no_memory);
}

// Otherwise the measured duration of an operation would be negative.
TEST_F(Host, AnOperationBeginsBeforeItEnds) {
  const auto core = attach();
  const PortHandle port = core->open_port(7).value();
  ASSERT_EQ(core->reserve_events(port, 1), Status::ok);
  engine::OperationHandle operation;
  const auto before = base::MonotonicClock::now();
  ASSERT_EQ(core->send(port, {.to = {core->address(), 8}, .part = {memory_, 8, 1}}, operation), Status::ok);
  EXPECT_GE(operation.at, before);
  EXPECT_GE(base::Instant(std::chrono::nanoseconds(next(*core, port).time_ns)), operation.at);
  core->close_port(port);
}

// A forked child has copies of the application's sockets, and outlives it.
TEST_F(Host, AnApplicationEndsWithItsProcessWhoeverHasItsSockets) {
  const auto witness = attach();
  const engine::EngineOptions settings = options();
  int held[2];
  ASSERT_EQ(::pipe(held), 0);
  EXPECT_EQ(base::exit_of_child([&] {
              ::close(held[1]);
              const auto core = HostCore::attach(settings.host(), loopback(), settings).value();
              if (!core->open_port(2)) return 1;
              if (::fork() != 0) return 0;
              char end;
              (void)!::read(held[0], &end, 1);  // until the test's end
              return 0;
            }),
            0);
  ::close(held[0]);
  Result<PortHandle> port = witness->open_port(2);
  for (int i = 0; i < 5000 && !port; ++i) {
    std::this_thread::sleep_for(milliseconds(1));
    port = witness->open_port(2);
  }
  EXPECT_TRUE(port.has_value());
  ::close(held[1]);
}

// An application is killed at various instants. Its port and descriptors are freed. Another application still works.
TEST_F(Host, AKilledApplicationLeavesNothing) {
  const auto witness = attach();
  const PortHandle port = witness->open_port(1).value();
  const engine::EngineOptions settings = options();
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  const auto had = descriptors();
  const int rounds = tests::is_full_run() ? 500 : 20;
  for (int round = 0; round < rounds; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto core = HostCore::attach(settings.host(), loopback(), settings).value();
      const PortHandle mine = core->open_port(2).value();
      for (;;) {
        receive(*core, mine, memory_, 1);
        send(*core, mine, 2, memory_, 2);
        send(*core, mine, 1, memory_, 3);
        Completion completion;
        while (core->next_event(mine, completion)) core->release_events(mine, 1);
      }
    }
    // Waits until the child sends, and then for a time that differs from round to round.
    while (witness->dropped_no_buffer(port) < static_cast<std::uint64_t>(round * 50 + 1)) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(137 * (round % 20)));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    Result<PortHandle> again = witness->open_port(2);
    while (!again) {
      ASSERT_EQ(again.error().status, Status::in_use);
      again = witness->open_port(2);
    }
    witness->close_port(*again);
    ASSERT_EQ(receive(*witness, port, memory_, 4), Status::ok);
    ASSERT_EQ(send(*witness, port, 1, memory_, 5), Status::ok);
    EXPECT_EQ(next(*witness, port).cookie + next(*witness, port).cookie, 9U);
  }
  while (host_->service().applications() > 1) std::this_thread::yield();
  const auto end = base::MonotonicClock::now() + std::chrono::seconds(10);  // ends a failing test only
  while (descriptors() > had && base::MonotonicClock::now() < end) std::this_thread::yield();
  EXPECT_LE(descriptors(), had) << "whatever came from a killed one is closed";
}

// A stopped application takes no events, and does not reply. Its peers' messages to it end all the same: those beyond
// its buffers are dropped and counted. The host engine keeps nothing for it, and it continues afterwards.
TEST_F(Host, AStoppedApplicationHoldsUpNobody) {
  const auto witness = attach();
  const PortHandle port = witness->open_port(1).value();
  const engine::EngineOptions settings = options();
  int up[2] = {}, down[2] = {};
  ASSERT_EQ(::pipe(up) + ::pipe(down), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto core = HostCore::attach(settings.host(), witness->address(), settings).value();
    const PortHandle mine = core->open_port(2).value();
    for (std::uint64_t cookie = 0; cookie < 3; ++cookie) receive(*core, mine, memory_, cookie);
    (void)!::write(up[1], "r", 1);
    char go = 0;
    (void)!::read(down[0], &go, 1);
    std::uint64_t cookies = 0;
    for (int i = 0; i < 3; ++i) cookies += next(*core, mine).cookie;
    ::_exit(cookies == 0 + 1 + 2 && core->dropped_no_buffer(mine) > 0 ? 0 : 1);
  }
  char ready = 0;
  ASSERT_EQ(::read(up[0], &ready, 1), 1);
  ::kill(child, SIGSTOP);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status));
  for (std::uint64_t i = 0; i < 5000; ++i) {
    ASSERT_EQ(send(*witness, port, 2, memory_, i), Status::ok);
    const Completion sent = next(*witness, port);
    ASSERT_EQ(sent.status, Status::ok);
    ASSERT_EQ(sent.cookie, i);
  }
  const auto listed = list_attached(host_->file()).value();
  EXPECT_EQ(std::ranges::count_if(listed, [&](const auto& one) { return one.process == child && one.operations == 0; }),
            1)
      << "nothing waits for the stopped application";
  ::kill(child, SIGCONT);
  (void)!::write(down[1], "g", 1);
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
  for (const int end : {up[0], up[1], down[0], down[1]}) ::close(end);
}

// Quotas --------------------------------------------------------------------------------------------------------------

TEST_F(Host, AQuotaBoundsPortsAndOperationsAndSaysSo) {
  host_ = std::make_unique<HostForTests>(
      ServiceOptions{.rules = {Rule::parse("portals=30-31 ports=2 operations=3").value()}});
  const auto core = attach();
  const auto port = core->open_port(30 << 12 | 7).value();
  const auto outside = core->open_port(32 << 12);
  ASSERT_FALSE(outside.has_value());
  EXPECT_EQ(outside.error().status, Status::not_permitted);
  EXPECT_THAT(outside.error().message, testing::HasSubstr("portals=30-31"));
  std::uint32_t number = 0;
  EXPECT_FALSE(core->open_port_dynamic(29 << 12, 4096 + 1, number).has_value());
  EXPECT_FALSE(core->open_port_dynamic(31 << 12, ~0U, number).has_value());
  EXPECT_TRUE(core->open_port_dynamic(31 << 12, 4096, number).has_value());
  const auto beyond = core->open_port(30 << 12);
  ASSERT_FALSE(beyond.has_value());
  EXPECT_THAT(beyond.error().message, testing::HasSubstr("has 2 ports"));
  for (std::uint64_t cookie = 0; cookie < 3; ++cookie) EXPECT_EQ(receive(*core, port, memory_, cookie), Status::ok);
  EXPECT_EQ(receive(*core, port, memory_, 3), Status::no_memory);
  EXPECT_EQ(send(*core, port, 30 << 12 | 7, memory_, 4), Status::no_memory);
  const auto listed = list_attached(host_->file()).value();
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0].ports_max, 2u);
  EXPECT_EQ(listed[0].operations_max, 3u);
}

// Each port counts with the most that it ever had: the engine keeps that memory until the port closes.
TEST_F(Host, AQuotaBoundsTheEventsOfAllPorts) {
  host_ = std::make_unique<HostForTests>(ServiceOptions{.rules = {Rule::parse("events=1000").value()}});
  const auto core = attach();
  const auto one = core->open_port(1).value();
  EXPECT_EQ(core->reserve_events(one, 1001), Status::no_memory);
  ASSERT_EQ(core->reserve_events(one, 600), Status::ok);
  core->release_events(one, 600);
  const auto other = core->open_port(2).value();
  EXPECT_EQ(core->reserve_events(other, 401), Status::no_memory);
  EXPECT_EQ(core->reserve_events(other, 400), Status::ok);
  EXPECT_EQ(core->reserve_events(one, 600), Status::ok);
  EXPECT_EQ(core->reserve_events(one, 1), Status::no_memory);
  core->close_port(one);
  EXPECT_EQ(core->reserve_events(other, 600), Status::ok);
  EXPECT_EQ(list_attached(host_->file()).value()[0].events_max, 1000u);
}

// Each number costs the engine a look, under the lock of all its applications.
TEST_F(Host, ACallNamesABoundedNumberOfPortNumbers) {
  const auto core = attach();
  std::uint32_t number = 0;
  for (const std::uint32_t count : {kPortNumbersMax + 1, ~0U}) {
    const auto refused = core->open_port_dynamic(0, count, number);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().status, Status::invalid);
    EXPECT_THAT(refused.error().message, testing::HasSubstr("any of " + std::to_string(count) + " port numbers"));
    EXPECT_THAT(refused.error().message, testing::HasSubstr("at most 65536"));
  }
  ASSERT_TRUE(core->open_port_dynamic(1, kPortNumbersMax, number).has_value());
  EXPECT_EQ(number, kPortNumbersMax);
}

TEST_F(Host, WhoComesLateHasItsShareOfAnEnginesOperations) {
  ServiceOptions narrow{.applications_max = 2};
  ASSERT_TRUE(narrow.engine.set("operations_max", "64"));
  host_ = std::make_unique<HostForTests>(std::move(narrow));
  const auto greedy = attach(), late = attach(greedy->address().port);
  // Receives beyond the share end with `no_memory`.
  const auto taken_by = [&](HostCore& core, std::uint32_t number) {
    const auto port = core.open_port(number).value();
    for (std::uint64_t cookie = 0; cookie < 64; ++cookie) EXPECT_EQ(receive(core, port, memory_, cookie), Status::ok);
    std::uint32_t refused = 0;
    for (Completion completion; core.next_event(port, completion); ++refused)
      EXPECT_EQ(completion.status, Status::no_memory);
    return 64 - refused;
  };
  EXPECT_EQ(taken_by(*greedy, 1), 16u + 16u) << "guaranteed, and half of what is common";
  EXPECT_EQ(taken_by(*late, 2), 16u + 8u) << "and half of what is left of that";
}

TEST_F(Host, ARateHoldsUpWhoeverSendsMore) {
  constexpr std::uint64_t kRate = 4 << 20, kMessages = 20;
  host_ = std::make_unique<HostForTests>(ServiceOptions{.rules = {{.quota = {.bytes_per_second = kRate}}}});
  const auto core = attach();
  const auto port = core->open_port(1).value();
  std::vector<std::byte> bytes(64 << 10);
  const std::array<iovec, 1> memory{iovec{bytes.data(), bytes.size()}};
  const auto start = base::MonotonicClock::now();
  for (std::uint64_t i = 0; i < kMessages; ++i) EXPECT_EQ(send(*core, port, 1, memory, i), Status::ok);
  for (std::uint64_t i = 0; i < kMessages; ++i) EXPECT_TRUE(next(*core, port).is_final);
  const auto saved_up = std::chrono::duration<double>(Allowance::kBurst).count();
  const double least = static_cast<double>((kMessages - 1) * bytes.size()) / kRate - saved_up;
  EXPECT_GE(std::chrono::duration<double>(base::MonotonicClock::now() - start).count(), least);
}

}  // namespace
}  // namespace fairlead::host
