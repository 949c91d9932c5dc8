// The carrier of messages between connection managers.
#include "doors/rdma_cm/carrier.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "base/file_descriptor.hpp"
#include "doors/rdma_cm/addressing.hpp"

namespace fairlead::rdma_cm {
namespace {

constexpr int kOutcomeAtMost = 20'000;  // ms; only ends a failing test

// A socket that accepts everything and never answers: such a peer could hold a message indefinitely.
TEST(ManagerCarrier, LosesPatienceWithAPeerThatSaysNothing) {
  const base::FileDescriptor wake(::eventfd(0, EFD_CLOEXEC));
  Carrier carrier(wake.get(), std::chrono::milliseconds(20));
  const base::FileDescriptor mute(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in name{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {::htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  socklen_t size = sizeof name;
  ASSERT_EQ(::bind(mute.get(), reinterpret_cast<sockaddr*>(&name), size), 0);
  ASSERT_EQ(::getsockname(mute.get(), reinterpret_cast<sockaddr*>(&name), &size), 0);
  const Ip ip = *ip_of("127.0.0.1");
  ASSERT_EQ(carrier.send(ip, listener_address(ip, ::ntohs(name.sin_port)), {}, 7), Status::ok);
  pollfd poll{.fd = wake.get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&poll, 1, kOutcomeAtMost), 1);
  const auto outcomes = carrier.collect().outcomes;
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes[0].tag, 7U);
  EXPECT_EQ(outcomes[0].status, Status::timed_out);
}

TEST(ManagerCarrier, ReadsThePartsOfAnAddress) {
  const Ip v4 = *ip_of("10.0.0.7"), v6 = *ip_of("fd00::1");
  for (const Ip& ip : {v4, v6}) {
    EXPECT_EQ(ip_of_address(listener_address(ip, 7471)), ip);
    EXPECT_EQ(port_of_address(listener_address(ip, 7471)), 7471);
  }
  EXPECT_EQ(port_of_address("10.0.0.7@udp:80"), 80);
  for (const char* text : {"", "10.0.0.7", "10.0.0.7:80", "10.0.0.7@udp", "10.0.0.7@udp:", "[fd00::1]@udp:x:37:1",
                           "10.0.0.7@udp:65536:37:1", "10.0.0.7@udp:80x:37:1"})
    EXPECT_EQ(port_of_address(text), std::nullopt) << text;
}

}  // namespace
}  // namespace fairlead::rdma_cm
