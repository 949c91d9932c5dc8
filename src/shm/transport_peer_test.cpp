#include "shm/transport_peer.hpp"

#include <gtest/gtest.h>

namespace fairlead::shm {
namespace {

base::SocketAddress peer_at(std::uint16_t port) {
  return base::SocketAddress::from_ip("10.0.0.1", port).value();
}

// Otherwise the notice of one peer's end would name another peer.
TEST(TransportPeers, ASlotIsFreeOnlyAfterTheNoticeOfItsPeersEnd) {
  TransportPeers peers(4);
  const std::uint32_t first = peers.add(peer_at(1));
  const link::PeerHandle handle = peers.handle_of(first);
  peers.forget(first);
  EXPECT_EQ(peers.find(handle), nullptr);
  EXPECT_EQ(peers.find(peer_at(1)), TransportPeers::kNone);
  EXPECT_NE(peers.add(peer_at(2)), first);
  EXPECT_EQ(peers[handle].address, peer_at(1));
  peers.release(handle);
  EXPECT_EQ(peers.add(peer_at(3)), first);
  EXPECT_NE(peers.handle_of(first), handle) << "a message to the first peer is none to the third";
}

}  // namespace
}  // namespace fairlead::shm
