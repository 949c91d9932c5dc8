#include "shm/transport_facts.hpp"

#include <fmt/format.h>

namespace fairlead::shm {

void add_transport(const Transport& shm, observe::EngineFacts& facts) {
  facts.add("shm.", kTransportCounterRows, shm.counters());
  const ConnectionCounters& connections = shm.connections().counters();
  facts.add("shm.", kConnectionCounterRows, connections);
  if (shm.connections().published()) {
    const PublishedMemory& published = *shm.connections().published();
    const RemappedRanges* const traced = published.traced ? &published.traced->ranges() : nullptr;
    facts.counters.push_back({"shm.shared_bytes", published.remapped.bytes()});
    facts.counters.push_back({"shm.traced_bytes", traced != nullptr ? traced->bytes() : 0});
    facts.counters.push_back(
        {"shm.left_in_place", published.remapped.left_in_place() + (traced != nullptr ? traced->left_in_place() : 0)});
    facts.counters.push_back({"shm.huge_bytes", published.remapped.huge_bytes()});
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
