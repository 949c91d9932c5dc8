// In a steady state, neither an application nor the host engine makes a system call for an operation.

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "base/child_for_tests.hpp"
#include "host/daemon_for_tests.hpp"
#include "host/host_core.hpp"
#include "tests/system_call_counter.hpp"

namespace fairlead::tests {
namespace {

using engine::Completion;
using engine::PortHandle;
using host::HostCore;

base::SocketAddress steady_loopback() {
  return base::SocketAddress::from_ip("127.0.0.1", 0).value();
}

/// Makes both sides poll: neither then needs to be woken.
engine::EngineOptions polling() {
  engine::EngineOptions options;
  EXPECT_TRUE(options.set("wait", "spin"));
  EXPECT_TRUE(options.set("spin", "1000000"));
  return options;
}

/// Starts a host engine whose system calls are counted. The caller kills it.
pid_t start_counted(const std::string& file, SystemCallCounts& counts) {
  int ready[2] = {};
  EXPECT_EQ(::pipe(ready), 0);
  const pid_t process = ::fork();
  if (process == 0) {
    base::is_child_of_test = true;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!count_system_calls(counts)) ::_exit(1);
    auto service = host::Service::open({.file = file, .engine = polling()});
    if (!service || ::write(ready[1], "r", 1) != 1) ::_exit(1);
    (*service)->run();
    ::_exit(0);
  }
  ::close(ready[1]);
  char byte = 0;
  EXPECT_EQ(::read(ready[0], &byte, 1), 1) << "the host engine did not start";
  ::close(ready[0]);
  return process;
}

constexpr std::uint32_t kMessagesInRound = 64;

/// Sends itself `rounds` times kMessagesInRound messages into one buffer.
bool talk_to_itself(HostCore& core, PortHandle port, int rounds) {
  const std::uint64_t sent = 4711;
  std::array<std::uint64_t, kMessagesInRound> got{};
  const iovec from{const_cast<std::uint64_t*>(&sent), sizeof sent}, to{got.data(), sizeof got};
  engine::OperationHandle operation;
  for (int i = 0; i < rounds; ++i) {
    got = {};
    std::uint32_t events = 2 * kMessagesInRound;
    if (core.reserve_events(port, events) != Status::ok) return false;
    const engine::Receive receive{.memory = {&to, 1}, .size_min = 8, .messages_max = kMessagesInRound};
    if (core.post_receive(port, receive, operation) != Status::ok) return false;
    for (std::uint32_t message = 0; message < kMessagesInRound; ++message) {
      const engine::Send send{.to = {core.address(), 1}, .part = {{&from, 1}, sizeof sent, 2}};
      if (core.send(port, send, operation) != Status::ok) return false;
    }
    while (events > 0) {
      Completion completion;
      if (core.next_event(port, completion)) {
        if (completion.status != Status::ok) return false;
        core.release_events(port, 1);
        --events;
      } else {
        ::sched_yield();
      }
    }
    if (std::ranges::any_of(got, [&](std::uint64_t word) { return word != sent; })) return false;
  }
  return true;
}

bool make_active(HostCore& core, PortHandle port) {
  return core.active_ports()->activate(port) == Status::ok &&
         core.active_ports()->set_access(port, {engine::AccessRule::Kind::all, 0}) == Status::ok &&
         core.reserve_events(port, 2 * kMessagesInRound) == Status::ok;
}

/// Sends itself `rounds` times kMessagesInRound active messages of 64 and of 4096 bytes, and answers each.
bool ask_itself(HostCore& core, PortHandle port, int rounds) {
  engine::ActivePorts& ports = *core.active_ports();
  std::array<std::byte, 4096> bytes{};
  const auto send = [&](const engine::ActiveMessage& message) {
    engine::Conversation conversation;
    Status status = Status::again;
    while ((status = ports.send_active(port, message, conversation)) == Status::again) ::sched_yield();
    return status == Status::ok;
  };
  for (std::uint64_t round = 1; round <= static_cast<std::uint64_t>(rounds); ++round) {
    for (std::uint64_t i = 0; i < kMessagesInRound; ++i) {
      const iovec piece{bytes.data(), i % 8 == 0 ? bytes.size() : 64};
      if (!send({.to = {core.address(), 1}, .name = round << 32 | i, .memory = {&piece, 1}, .length = piece.iov_len}))
        return false;
    }
    std::uint32_t events = 0, answers = 0;
    while (events < 2 * kMessagesInRound || answers < kMessagesInRound) {
      Completion completion;
      for (; core.next_event(port, completion); ++events)
        if (completion.status != Status::ok) return false;
      engine::Arrival* const arrival = ports.next_arrival(port);
      if (arrival == nullptr) {
        ::sched_yield();
        continue;
      }
      const engine::ActiveMessage reply{.to = arrival->source,
                                        .kind = engine::ActiveKind::reply,
                                        .name = arrival->name,
                                        .reply_access = arrival->reply_access};
      if (arrival->status != Status::ok) return false;
      if (arrival->kind == engine::ActiveKind::reply) ++answers;
      if (arrival->kind == engine::ActiveKind::request && !send(reply)) return false;
      ports.release_arrival(port, *arrival);
    }
  }
  return true;
}

/// What the application does: `prepare` once, then `talk` for some rounds.
struct Talk {
  const char* name;
  bool (*prepare)(HostCore& core, PortHandle port);
  bool (*talk)(HostCore& core, PortHandle port, int rounds);
};
class SteadyHost : public testing::TestWithParam<Talk> {};

TEST_P(SteadyHost, MakesNoSystemCallForAnOperationOnEitherSide) {
  const Talk& it = GetParam();
  constexpr int kWarmUp = 20, kRounds = 150;
  // One system call for 50 messages at most. Delays by other programs of this host cause few.
  constexpr std::uint64_t kAtMost = kRounds * kMessagesInRound / 50;
  char folder[] = "/tmp/fairlead-host-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string file = std::string(folder) + "/host";
  SystemCallCounts &daemons = shared_counts(), &ours = shared_counts(), &made = shared_counts();
  const pid_t daemon = start_counted(file, daemons);
  const int code = base::exit_of_child([&] {
    if (!count_system_calls(ours)) return 1;
    const auto core = HostCore::attach(file, steady_loopback(), polling());
    if (!core) return std::fprintf(stderr, "%s\n", core.error().message.c_str()), 2;
    const auto port = (*core)->open_port(1);
    if (!port || !it.prepare(**core, *port) || !it.talk(**core, *port, kWarmUp)) return 3;
    const std::uint64_t own_before = ours.work(), daemons_before = daemons.work();
    if (!it.talk(**core, *port, kRounds)) return 4;
    made.of[0] = ours.work() - own_before;
    made.of[1] = daemons.work() - daemons_before;
    return 0;
  });
  ::kill(daemon, SIGKILL);
  ::waitpid(daemon, nullptr, 0);
  std::filesystem::remove_all(folder);
  ASSERT_EQ(code, 0);
  EXPECT_GT(ours.work(), 10U) << "calls of the attachment are counted";
  EXPECT_GT(daemons.work(), 10U) << "calls of the attachment are counted";
  EXPECT_LE(made.of[0], kAtMost) << "by the application, in all: " << ours.describe_work();
  EXPECT_LE(made.of[1], kAtMost) << "by the host engine, in all: " << daemons.describe_work();
  RecordProperty("application", static_cast<int>(made.of[0]));
  RecordProperty("host_engine", static_cast<int>(made.of[1]));
}
INSTANTIATE_TEST_SUITE_P(With, SteadyHost,
                         testing::Values(Talk{"messages", [](HostCore&, PortHandle) { return true; }, &talk_to_itself},
                                         Talk{"active_messages", &make_active, &ask_itself}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace fairlead::tests
