// Listeners as a program uses them: requests beyond the backlog are asked to come again.

#include <unistd.h>

#include "doors/rdma_cm/device_for_tests.hpp"

namespace fairlead::rdma_cm {
namespace {

void wait_until_backlog_was_full_since(std::uint64_t before) {
  for (int i = 0; i < kEventAtMost && Service::of_process().counters().backlog_full == before; ++i) ::usleep(1000);
  EXPECT_GT(Service::of_process().counters().backlog_full, before);
}

TEST(ManagerCommand, AsksRequestersBeyondTheBacklogToComeAgain) {
  Device server, client;
  const std::uint32_t listener = server.create(1);
  ASSERT_EQ(server.bind(listener, local(0)), 0);
  ASSERT_EQ(server.listen(listener, 1), 0);
  const std::uint64_t before = Service::of_process().counters().backlog_full;
  constexpr unsigned kClients = 3;
  for (unsigned i = 0; i < kClients; ++i) {
    const std::uint32_t active = client.create(2 + i);
    client.route(active, local(server.port_of(listener)));
    ASSERT_EQ(client.connect(active), 0);
  }
  wait_until_backlog_was_full_since(before);
  for (unsigned i = 0; i < kClients; ++i) {
    const rdma_ucm_event_resp request = server.expect_event(Event::connect_request);
    ASSERT_EQ(
        server.command(
            RDMA_USER_CM_CMD_REJECT,
            rdma_ucm_reject{.id = request.id, .private_data_len = 0, .reason = 0, .reserved = {}, .private_data = {}}),
        0);
    client.expect_event(Event::rejected, 28);
  }
}

TEST(ManagerCommand, LetsOneHostFillHalfOfABacklog) {
  Device server, client;
  const std::uint32_t listener = server.create(0);  // the program chooses the ids' uid
  ASSERT_EQ(server.bind(listener, local(0)), 0);
  ASSERT_EQ(server.listen(listener, 4), 0);
  const std::uint64_t before = Service::of_process().counters().backlog_full;
  for (unsigned i = 0; i < 3; ++i) {
    const std::uint32_t active = client.create(2 + i);
    client.route(active, local(server.port_of(listener)));
    ASSERT_EQ(client.connect(active), 0);
  }
  wait_until_backlog_was_full_since(before);  // the third one, although the backlog is four
  for (unsigned i = 0; i < 3; ++i) server.expect_event(Event::connect_request);
}

}  // namespace
}  // namespace fairlead::rdma_cm
