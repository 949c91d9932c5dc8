// A stop beside a peer that stands still, measured in steps instead of time: how often the engine sleeps. Each sleep is
// short and their number is bounded, whatever the peer does.

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include <fairlead/net.hpp>

#include "net/record_for_tests.hpp"
#include "tests/fellow.hpp"
#include "tests/system_call_counter.hpp"

namespace fairlead::tests {
namespace {

using net::Buffer;
using net::MessageReceive;
using net::MessageSend;
using net::TransferMachine;

using Address = std::array<char, 64>;

net::Domain patient_domain() {
  net::DomainSettings settings;
  settings.engine = {{"path", "udp"}, {"give_up_after", "600000"}};
  return net::Domain::open(settings).value();
}

void hold_a_buffer(int socket) {
  net::Domain domain = patient_domain();
  TransferMachine machine(domain);
  Address address{};
  const std::string own(machine.start_and_wait("127.0.0.1@udp:*:34:*").value().address());
  own.copy(address.data(), address.size() - 1);
  const auto inbox = Buffer::allocate(domain, 4096).value();
  (void)inbox->set_callback([](const net::BufferEvent&) {});
  (void)machine.add(*inbox, MessageReceive{});
  tell(socket, address);
  char order = 0;
  hear(socket, order);  // until the other end closes the socket
}

/// What the counted process tells of its stop.
struct StopReport {
  std::uint64_t sleeps = 0, canceled = 0;
};

constexpr std::size_t kSends = 1000;

/// Meets the peer; when the test says so, fills the queue and stops.
void stop_beside(int socket, const Address& peer, const SystemCallCounts& counts) {
  net::Domain domain = patient_domain();
  net::Record record;
  TransferMachine machine(domain);
  (void)machine.start_and_wait("127.0.0.1@udp:*:34:*").value();
  const net::Destination to = machine.create_end_point(peer.data()).value();
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (std::size_t i = 0; i < kSends; ++i) {
    buffers.push_back(Buffer::allocate(domain, 4096).value());
    (void)buffers.back()->set_callback(record.callback());
  }
  (void)machine.add(*buffers[0], MessageSend{.to = to});
  record.wait_for(1);
  char order = 0;
  tell(socket, order);
  hear(socket, order);
  for (const auto& buffer : buffers) (void)machine.add(*buffer, MessageSend{.to = to});
  StopReport told{.sleeps = counts.of[SYS_clock_nanosleep]};
  const bool has_stopped = machine.stop_and_wait(net::StopMode::abort).has_value();
  told.sleeps = has_stopped ? counts.of[SYS_clock_nanosleep] - told.sleeps : ~0ULL;
  for (const auto& entry : record.entries()) told.canceled += entry.status == Status::canceled ? 1 : 0;
  tell(socket, told);
}

/// Stops once beside a new peer that stands still.
void stop_once(StopReport& told) {
  SystemCallCounts& counts = shared_counts();
  Fellow peer(hold_a_buffer);
  Address address{};
  ASSERT_TRUE(hear(peer.socket(), address));
  Fellow stopping([&](int socket) {
    if (count_system_calls(counts)) stop_beside(socket, address, counts);
  });
  char order = 0;
  ASSERT_TRUE(hear(stopping.socket(), order));
  ASSERT_TRUE(peer.stop());
  ASSERT_TRUE(tell(stopping.socket(), order));
  ASSERT_TRUE(hear(stopping.socket(), told));
}

// A thread also sleeps while it waits for a lock whose holder has lost its processor. That can only add sleeps, and
// rarely does: one stop without it is enough. A stop that waits for its peer has too many each time.
TEST(NetStopSteps, SleepsAFewTimesBesideAPeerThatStandsStill) {
  constexpr std::uint64_t kSleepsMost = 10;  // two for each of five farewells
  constexpr int kStopsMost = 20;
  std::uint64_t fewest = ~0ULL;
  for (int stop = 0; stop < kStopsMost && fewest > kSleepsMost; ++stop) {
    StopReport told;
    ASSERT_NO_FATAL_FAILURE(stop_once(told));
    EXPECT_EQ(told.canceled, kSends);
    fewest = std::min(fewest, told.sleeps);
  }
  EXPECT_LE(fewest, kSleepsMost);
}

}  // namespace
}  // namespace fairlead::tests
