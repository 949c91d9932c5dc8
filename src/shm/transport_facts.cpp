#include "shm/transport_facts.hpp"

#include <fmt/format.h>

namespace fairlead::shm {

void add_transport(const Transport& shm, observe::EngineFacts& facts) {
  facts.add("shm.", kTransportCounterRows, shm.counters());
  const ConnectionCounters& connections = shm.connections().counters();
  facts.add("shm.", kConnectionCounterRows, connections);
  if (shm.connections().published()) {
    facts.counters.push_back({"shm.shared_bytes", shm.connections().published()->remapped.bytes()});
    facts.counters.push_back({"shm.left_in_place", shm.connections().published()->remapped.left_in_place()});
    facts.counters.push_back({"shm.huge_bytes", shm.connections().published()->remapped.huge_bytes()});
  }
  for (std::size_t i = 0; i < connections.processes.size(); ++i)
    facts.counters.push_back({fmt::format("shm.process.{}", CrossMemory::kNames[i]), connections.processes[i]});
  shm.for_each_peer([&](const base::SocketAddress& address, const Connection& peer) {
    ++facts.peers_total;
    if (facts.peers.size() < observe::EngineFacts::kPeersInFacts)
      facts.peers.push_back({.address = address,
                             .path = "shm",
                             .path_reason = {},
                             .memory_reason = std::string(CrossMemory::reason(peer.process.denial())),
                             .is_connected = true});
  });
}

}  // namespace fairlead::shm
