// Peers that an engine of the host engine has lost: applications hear of them.

#include "host/lost_peer.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "embedded/attach.hpp"
#include "host/host_core.hpp"
#include "host/host_for_tests.hpp"

namespace fairlead::host {
namespace {

TEST(LostPeer, TheLossGoesThroughAnAnswerUnchanged) {
  class OneLoss final : public engine::ActivePorts {
   public:
    std::uint64_t losses() const override { return 5; }
    bool next_loss(std::uint64_t& seen, engine::PeerLoss& loss) override {
      if (seen >= 5) return false;
      seen = 5;
      loss = {base::SocketAddress::from_ip("192.0.2.7", 20480).value(), Status::silent, true, 7ULL << 32 | 9, 5};
      return true;
    }
    Status activate(engine::PortHandle) override { return Status::ok; }
    Status set_access(engine::PortHandle, const engine::AccessRule&) override { return Status::ok; }
    Status set_segment(engine::PortHandle, const engine::Segment&) override { return Status::ok; }
    bool is_copied(std::uint64_t) const override { return true; }
    Status send_active(engine::PortHandle, const engine::ActiveMessage&, engine::Conversation&) override {
      return Status::ok;
    }
    void forget_request(engine::PortHandle, std::uint64_t) override {}
    engine::Arrival* next_arrival(engine::PortHandle) override { return nullptr; }
    void release_arrival(engine::PortHandle, engine::Arrival&) override {}
    bool has_arrival(engine::PortHandle) const override { return false; }
    bool wait_any(std::span<const engine::PortHandle>, base::Instant) override { return false; }
    void ask_peer(const base::SocketAddress&) override {}
  } ports;
  std::uint64_t seen = 3;
  const auto loss = loss_from(answer_loss(ports, seen), seen);
  ASSERT_TRUE(loss.has_value());
  EXPECT_EQ(seen, 5U);
  EXPECT_EQ(loss->engine, base::SocketAddress::from_ip("192.0.2.7", 20480).value());
  EXPECT_EQ(loss->status, Status::silent);
  EXPECT_TRUE(loss->has_left);
  EXPECT_EQ(loss->way, 7ULL << 32 | 9);
  EXPECT_EQ(loss->mark, 5U);
  EXPECT_FALSE(loss_from(answer_loss(ports, seen), seen).has_value());
  EXPECT_EQ(seen, 5U);
  seen = 100;  // of an earlier program
  EXPECT_TRUE(loss_from(answer_loss(ports, seen), seen).has_value());
}

// The end of an engine in another process, here in this one, ends a wait of each application that watches.
TEST(LostPeer, EndsAWaitAndIsToldOnce) {
  const HostForTests host;
  const auto here = base::SocketAddress::from_ip("127.0.0.1", 0).value();
  const auto core = HostCore::attach(host.file(), here, {}).value();
  engine::ActivePorts& losses = *core->active_ports();
  const engine::PortHandle port = core->open_port(1).value();
  core->watch_losses(port);
  auto peer = embedded::attach_embedded(base::SocketAddress::from_ip("127.0.0.2", 0).value(), {}).value();
  ASSERT_TRUE(peer->open_port(2).has_value());
  const base::SocketAddress address = peer->address();
  std::array<std::byte, 8> bytes{};
  const iovec memory{bytes.data(), bytes.size()};
  engine::OperationHandle operation;
  ASSERT_EQ(core->reserve_events(port, 1), Status::ok);
  ASSERT_EQ(core->send(port, {.to = {address, 2}, .part = {{&memory, 1}, 8, 1}}, operation), Status::ok);
  engine::Completion completion;
  while (!core->next_event(port, completion)) core->wait(port, base::kNever);
  ASSERT_EQ(completion.status, Status::ok);
  std::uint64_t seen = losses.losses();
  peer.reset();
  while (losses.losses() == seen) core->wait(port, base::kNever);
  engine::PeerLoss loss;
  ASSERT_TRUE(losses.next_loss(seen, loss));
  EXPECT_EQ(loss.engine, address);
  EXPECT_TRUE(loss.has_left);
  while (losses.next_loss(seen, loss)) EXPECT_EQ(loss.engine, address);  // another transport's
  EXPECT_EQ(seen, losses.losses());
  core->close_port(port);
}

}  // namespace
}  // namespace fairlead::host
