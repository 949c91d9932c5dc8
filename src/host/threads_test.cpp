// A host engine with several threads: applications are spread over them, reach each other, and share the limits.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "host/host_core.hpp"
#include "host/host_for_tests.hpp"
#include "host/listing.hpp"
#include "host/routes.hpp"

namespace fairlead::host {
namespace {

using engine::Completion;
using engine::PortHandle;

constexpr std::uint32_t kThreads = 3;

base::SocketAddress threads_loopback(std::uint16_t port = 0) {
  return base::SocketAddress::from_ip("127.0.0.1", port).value();
}

class HostThreads : public ::testing::Test {
 protected:
  static ServiceOptions options() { return {.threads = kThreads}; }
  std::shared_ptr<HostCore> attach(std::uint16_t port = 0) const {
    return HostCore::attach(host_->file(), threads_loopback(port), {}).value();
  }
  /// Sends a message from one application to another, and waits until both know.
  static void send(HostCore& from, PortHandle from_port, HostCore& to, PortHandle to_port, std::uint32_t number) {
    std::uint64_t sent = 4711, got = 0;
    const iovec source{&sent, sizeof sent}, target{&got, sizeof got};
    engine::OperationHandle operation;
    ASSERT_EQ(to.reserve_events(to_port, 1), Status::ok);
    ASSERT_EQ(to.post_receive(to_port, {.memory = {&target, 1}, .size_min = 8, .cookie = 1}, operation), Status::ok);
    ASSERT_EQ(from.reserve_events(from_port, 1), Status::ok);
    ASSERT_EQ(from.send(from_port, {.to = {to.address(), number}, .part = {{&source, 1}, 8, 2}}, operation),
              Status::ok);
    next(from, from_port);
    next(to, to_port);
    EXPECT_EQ(got, sent);
  }
  static void next(HostCore& core, PortHandle port) {
    Completion completion;
    while (!core.next_event(port, completion)) core.wait(port, base::kNever);
    EXPECT_EQ(completion.status, Status::ok);
    core.release_events(port, 1);
  }

  std::unique_ptr<HostForTests> host_ = std::make_unique<HostForTests>(options());
};

TEST_F(HostThreads, ApplicationsAreSpreadAndReachEachOther) {
  std::vector<std::shared_ptr<HostCore>> cores;
  std::vector<PortHandle> ports;
  std::set<std::uint16_t> engines;
  for (std::uint32_t i = 0; i < 2 * kThreads; ++i) {
    cores.push_back(attach());
    ports.push_back(cores.back()->open_port(i + 1).value());
    engines.insert(cores.back()->address().port);
  }
  EXPECT_EQ(engines.size(), kThreads) << "each thread has an engine with a UDP port of its own";
  EXPECT_EQ(host_->service().applications(), 2 * kThreads);
  for (std::uint32_t from = 0; from < cores.size(); ++from)
    for (std::uint32_t to = 0; to < cores.size(); ++to) send(*cores[from], ports[from], *cores[to], ports[to], to + 1);
  const auto listed = list_attached(host_->file(), 1).value();
  EXPECT_EQ(listed.size(), cores.size()) << "applications of all threads are listed, one in each answer";
}

TEST_F(HostThreads, WhoeverNamesAnEngineGetsItWhicheverThreadHasIt) {
  std::vector<std::shared_ptr<HostCore>> firsts;
  for (std::uint32_t i = 0; i < kThreads; ++i) firsts.push_back(attach());
  for (const auto& first : firsts) EXPECT_EQ(attach(first->address().port)->epoch(), first->epoch());
}

TEST_F(HostThreads, ShareTheLimitsOfApplications) {
  ServiceOptions narrow = options();
  narrow.applications_max = 2;
  host_ = std::make_unique<HostForTests>(std::move(narrow));
  auto first = attach();
  const auto second = attach();
  EXPECT_NE(first->address().port, second->address().port);
  const auto refused = HostCore::attach(host_->file(), threads_loopback(), {});
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, testing::HasSubstr("2 applications are attached"));
  first.reset();
  while (host_->service().applications() > 1) std::this_thread::yield();
  EXPECT_TRUE(HostCore::attach(host_->file(), threads_loopback(), {}).has_value());
}

TEST_F(HostThreads, AKilledApplicationFreesItsPortInEachThread) {
  std::vector<std::shared_ptr<HostCore>> witnesses;
  for (std::uint32_t i = 0; i < kThreads; ++i) witnesses.push_back(attach());
  for (const auto& witness : witnesses) {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      const auto core = HostCore::attach(host_->file(), witness->address(), {}).value();
      const bool has_port = core->open_port(9).has_value();
      (void)!::write(ready[1], &has_port, 1);
      for (;;) ::pause();
    }
    bool has_port = false;
    EXPECT_EQ(::read(ready[0], &has_port, 1), 1);
    EXPECT_TRUE(has_port);
    EXPECT_EQ(witness->open_port(9).error().status, Status::in_use);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    while (host_->service().applications() > kThreads) std::this_thread::yield();
    EXPECT_TRUE(witness->open_port(9).has_value());
    ::close(ready[0]);
    ::close(ready[1]);
  }
}

TEST_F(HostThreads, AllEndWithIt) {
  std::vector<std::shared_ptr<HostCore>> cores;
  for (std::uint32_t i = 0; i < kThreads; ++i) cores.push_back(attach());
  host_->end();
  for (const auto& core : cores) EXPECT_TRUE(core->look_for_end());
}

TEST(RoutesTest, OnePortHasOneThreadAndAnyPortTheIdlest) {
  const auto routes = std::make_shared<Routes>(4);
  const base::SocketAddress named = threads_loopback(20480), any = threads_loopback();
  const std::uint32_t fixed = routes->thread_for(named);
  EXPECT_EQ(routes->thread_for(named), fixed);
  EXPECT_NE(routes->thread_for(threads_loopback(20481)), fixed);
  std::vector<Routes::Seat> seats;
  std::array<int, 4> had{};
  for (int i = 0; i < 8; ++i) {
    const std::uint32_t thread = routes->thread_for(any);
    ++had.at(thread);
    seats.push_back(routes->enter(thread, 1, {}).value());
  }
  EXPECT_THAT(had, testing::Each(2));
  seats.erase(seats.begin() + 5);
  EXPECT_EQ(routes->applications(), 7U);
  const std::uint32_t other = (fixed + 1) % 4;
  EXPECT_TRUE(routes->claim(named, other)) << "for instance by an application that asked for any port";
  EXPECT_EQ(routes->thread_for(named), other);
  EXPECT_FALSE(routes->claim(named, fixed));
  routes->release(named);
  EXPECT_EQ(routes->thread_for(named), fixed);
}

TEST(RoutesTest, AUserHasItsShareOnAllThreadsTogether) {
  const auto routes = std::make_shared<Routes>(2);
  const Routes::Limits limits{.applications_max = 3, .per_user_max = 2};
  auto first = routes->enter(0, 1, limits), second = routes->enter(1, 1, limits);
  EXPECT_TRUE(first && second);
  EXPECT_EQ(routes->enter(0, 1, limits).error().status, Status::no_memory);
  const auto third = routes->enter(0, 2, limits);
  EXPECT_TRUE(third.has_value());
  EXPECT_FALSE(routes->enter(0, 3, limits).has_value());
  first = std::unexpected(Error{});
  EXPECT_TRUE(routes->enter(1, 1, limits).has_value());
}

TEST(RoutesTest, SecretsAndNumbersContainTheirThread) {
  for (std::uint32_t thread = 0; thread < kThreadsMax; ++thread) {
    EXPECT_EQ(Routes::thread_of_secret(Routes::secret_of(0x0123'4567'89ab'cdef, thread)), thread);
    EXPECT_EQ(Routes::thread_of_number(Routes::first_number(thread) + 12345), thread);
  }
}

TEST(ServiceCheck, NamesAProcessorThatTheHostLacks) {
  const auto refused = Service::check({.file = "/tmp/fairlead-none", .processors = {0, 4095}});
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, testing::HasSubstr("processor 4095"));
}

}  // namespace
}  // namespace fairlead::host
