// The port belongs to one process: no other can bind it, and it is free as soon as its owner has ended.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <atomic>
#include <new>

#include "path/traffic_for_tests.hpp"
#include "path/udp_path.hpp"

namespace fairlead::path {
namespace {

enum class Sharing { none, address, port };

bool can_bind(const base::SocketAddress& address, Sharing sharing) {
  const int family = address.is_v4() ? AF_INET : AF_INET6;
  const base::FileDescriptor socket(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (sharing == Sharing::address) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (sharing == Sharing::port) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
  sockaddr_storage kernel{};
  const unsigned length = address.to_kernel(reinterpret_cast<sockaddr*>(&kernel), family);
  return ::bind(socket.get(), reinterpret_cast<sockaddr*>(&kernel), length) == 0;
}

/// Tried in another process, as an intruder would.
bool can_anyone_bind(const base::SocketAddress& address) {
  const pid_t child = ::fork();
  if (child == 0) {
    bool is_possible = false;
    for (const Sharing sharing : {Sharing::none, Sharing::address, Sharing::port})
      is_possible = can_bind(address, sharing) || is_possible;
    ::_exit(is_possible ? 1 : 0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status != 0;
}

class UdpPort : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(BothFamilies, UdpPort, testing::Values("127.0.0.1", "::1", "::", "0.0.0.0"));

TEST_P(UdpPort, IsOursAlone) {
  auto path = open_path(GetParam());
  const auto address = path->address();
  auto peer = *base::SocketAddress::from_ip(address.is_v4() ? "127.0.0.1" : "::1", 9);
  EXPECT_FALSE(can_anyone_bind(address));
  for (std::uint16_t port = 9; port < 13; ++port) {
    peer.port = port;
    path->set_hot(peer, true);
    EXPECT_FALSE(can_anyone_bind(address));
  }
  for (std::uint16_t port = 9; port < 13; ++port) {
    peer.port = port;
    path->set_hot(peer, false);
    EXPECT_FALSE(can_anyone_bind(address));
  }
  path.reset();
  EXPECT_TRUE(can_anyone_bind(address));
}

// A second engine binds plainly, a careless stranger with SO_REUSEADDR: neither succeeds, at whatever moment.
TEST(UdpPort, StaysOursWhileHotSocketsComeAndGo) {
  const auto path = open_path("127.0.0.1");
  void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  auto* is_over = new (page) std::atomic<bool>(false);
  const pid_t child = ::fork();
  if (child == 0) {
    bool is_possible = false;
    for (int attempt = 0; attempt < 1'000'000 && !is_over->load(); ++attempt)
      is_possible = can_bind(path->address(), attempt % 2 == 0 ? Sharing::none : Sharing::address) || is_possible;
    ::_exit(is_possible ? 1 : 0);
  }
  const auto peer = *base::SocketAddress::from_ip("127.0.0.1", 9);
  for (int time = 0; time < 2000; ++time) path->set_hot(peer, time % 2 == 0);
  is_over->store(true);
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  ::munmap(page, 4096);
}

TEST(UdpPort, OfARangeIsTheFirstFree) {
  UdpOptions options;
  options.port_count = 3;
  std::vector<std::unique_ptr<UdpPath>> held;
  // Finds three neighbouring ports that are free now; another program may take one meanwhile, so it tries several
  // places.
  for (std::uint16_t base = 20'000; base < 32'000 && held.size() < 3; base = static_cast<std::uint16_t>(base + 400)) {
    held.clear();
    options.local = *base::SocketAddress::from_ip("127.0.0.1", base);
    for (std::uint16_t step = 0; step < 3; ++step) {
      auto path = UdpPath::open(options);
      if (path && (*path)->address().port == base + step) held.push_back(std::move(*path));
    }
  }
  ASSERT_EQ(held.size(), 3u);
  const auto none = UdpPath::open(options);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().status, Status::not_available);
  EXPECT_EQ(none.error().system_errno, EADDRINUSE);

  const std::uint16_t freed = held[1]->address().port;
  held[1].reset();
  const auto again = UdpPath::open(options);
  ASSERT_TRUE(again);
  EXPECT_EQ((*again)->address().port, freed);
}

TEST(UdpPort, SaysWhyItCannotBeBound) {
  const auto owner = open_path("127.0.0.1");
  UdpOptions options;
  options.local = owner->address();
  auto path = UdpPath::open(options);
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().status, Status::in_use);
  EXPECT_NE(path.error().message.find(owner->address().to_string()), std::string::npos);

  options.local = *base::SocketAddress::from_ip("192.0.2.1", 0);
  path = UdpPath::open(options);
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().status, Status::not_available);
}

}  // namespace
}  // namespace fairlead::path
