// A peer of this host is killed. The kernel knows it at once, whatever the link still waits for.
#include <signal.h>
#include <unistd.h>

#include <cstdlib>

#include "base/child_for_tests.hpp"
#include "doors/rdma_cm/device_for_tests.hpp"

namespace fairlead::rdma_cm {
namespace {

/// Connects to the port and waits to be killed.
void connect_to(std::uint16_t port, int told) {
  const Device client;
  const std::uint32_t active = client.create(2);
  client.route(active, local(port));
  EXPECT_EQ(client.connect(active), 0);
  client.expect_event(Event::connect_response);
  EXPECT_EQ(client.accept(active, 0, false), 0);
  [[maybe_unused]] const ssize_t written = ::write(told, "c", 1);
  ::pause();
}

/// Accepts a connection and kills its peer. Returns 0 if it is told of the end.
int outlive_peer(bool is_over_memory) {
  // Longer than this test waits: the link itself would not notice in time.
  ::setenv("FAIRLEAD_GIVE_UP_AFTER", "600000", 1);
  ::setenv("FAIRLEAD_PATH", is_over_memory ? "auto" : "udp", 1);
  const Device server;
  const std::uint32_t listener = listener_on(server, 1);
  int told[2];
  if (::pipe2(told, O_CLOEXEC) != 0) return 1;
  const std::uint16_t port = server.port_of(listener);
  const pid_t peer = ::fork();
  if (peer == 0) {
    connect_to(port, told[1]);
    ::_exit(1);
  }
  const std::uint32_t passive = server.expect_event(Event::connect_request).id;
  EXPECT_EQ(server.accept(passive, 3), 0);
  server.expect_event(Event::established);
  char byte = 0;
  EXPECT_EQ(::read(told[0], &byte, 1), 1);
  ::kill(peer, SIGKILL);
  ::waitpid(peer, nullptr, 0);
  server.expect_event(Event::disconnected);
  EXPECT_EQ(server.disconnect(passive), 0);
  return testing::Test::HasFailure() ? 1 : 0;
}

TEST(ManagerCommand, IsToldOfAKilledPeerOfThisHostBeforeTheLinkGivesItUp) {
  for (const bool is_over_memory : {true, false}) {
    SCOPED_TRACE(is_over_memory ? "shared memory" : "UDP");
    EXPECT_EQ(base::exit_of_child([=] { return outlive_peer(is_over_memory); }), 0);
  }
}

}  // namespace
}  // namespace fairlead::rdma_cm
