// An application that leaves while a silent peer may still use its memory. The host engine waits until it gives up that
// peer, and does not use the processor meanwhile.

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "base/child_for_tests.hpp"
#include "base/file_descriptor.hpp"
#include "host/hostile_pairs_for_tests.hpp"
#include "host/service.hpp"

namespace fairlead::host {
namespace {

constexpr std::uint32_t kSilentEngine = 6;

/// A socket at the address of an engine that never answers.
base::FileDescriptor open_silent_engine() {
  constexpr std::uint16_t kPortFirst = 20480;
  base::FileDescriptor silent(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(kPortFirst + kSilentEngine);
  at.sin_addr.s_addr = htonl(0x7F000108);
  EXPECT_EQ(::bind(silent.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  return silent;
}

/// In a child: posts a send to the silent engine, and ends without a word. Returns its exit code.
int post_and_end(const std::string& file) {
  HostilePairs application(file);
  application.settle();
  PairRequest pair = application.pair_in(verbs::QpState::init);
  auto change = application.connect_to(pair, kSilentEngine << 14 | 2, "127.0.1.8");
  if (!change) return 1;
  pair.opcode = std::to_underlying(verbs::SendOpcode::send);
  application.ask(pair);
  return application.call(CallKind::pair_facts, *change) == Status::ok ? 0 : 2;  // the send is with the engine
}

/// Returns how often this thread has slept.
long sleeps() {
  rusage usage{};
  EXPECT_EQ(::getrusage(RUSAGE_THREAD, &usage), 0);
  return usage.ru_nvcsw;
}

TEST(Leaving, SleepsUntilASilentPeerIsGivenUp) {
  constexpr long kSleeps = 20;
  char folder[] = "/tmp/fairlead-host-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string file = std::string(folder) + "/host";
  const base::FileDescriptor silent = open_silent_engine();
  ServiceOptions options{.file = file};
  ASSERT_TRUE(options.engine.set("give_up_after", "2000"));
  auto service = Service::open(std::move(options)).value();
  const auto serve_shortly = [&] { service->run(base::MonotonicClock::now() + std::chrono::milliseconds(10)); };
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    base::is_child_of_test = true;
    ::_exit(post_and_end(file));
  }
  int status = 0;
  const auto until = base::MonotonicClock::now() + kPatienceWithPairs;
  while (::waitpid(child, &status, WNOHANG) == 0 && base::MonotonicClock::now() < until) serve_shortly();
  ASSERT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
  const long before = sleeps();
  for (int i = 0; i < 20 && sleeps() < before + kSleeps; ++i) serve_shortly();
  EXPECT_GE(sleeps(), before + kSleeps);
  ASSERT_EQ(service->applications(), 1U) << "it has left already";
  service->stop();
  const long before_end = sleeps();
  EXPECT_TRUE(service->run());
  EXPECT_GE(sleeps(), before_end + kSleeps);
  EXPECT_EQ(service->applications(), 0U);
  service.reset();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace fairlead::host
