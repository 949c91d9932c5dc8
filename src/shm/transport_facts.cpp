#include "shm/transport_facts.hpp"

#include <fmt/format.h>

namespace fairlead::shm {

void add_transport(const Transport& shm, observe::EngineFacts& facts) {
  const auto add = [&](const char* name, std::uint64_t value) { facts.counters.push_back({name, value}); };
  const TransportCounters& own = shm.counters();
  add("shm.messages_sent", own.messages_sent);
  add("shm.bytes_sent", own.bytes_sent);
  add("shm.chunks_sent", own.chunks_sent);
  add("shm.messages_delivered", own.messages_delivered);
  add("shm.bytes_delivered", own.bytes_delivered);
  add("shm.messages_waited", own.messages_waited);
  add("shm.messages_pulled", own.messages_pulled);
  add("shm.messages_failed", own.messages_failed);
  const ConnectionCounters& connections = shm.connections().counters();
  add("shm.peers_opened", connections.opened);
  add("shm.peers_ended", connections.ended);
  add("shm.declined.user", connections.declined_user);
  add("shm.declined.greeting", connections.declined_greeting);
  add("shm.declined.address", connections.declined_address);
  add("shm.declined.proof", connections.declined_proof);
  add("shm.declined.late", connections.declined_late);
  add("shm.declined.crowd", connections.declined_crowd);
  add("shm.declined.full", connections.declined_full);
  add("shm.accepts_failed", connections.accepts_failed);
  add("shm.peers_put_out", connections.put_out);
  add("shm.refused_record", connections.refused_record);
  add("shm.sleeps", connections.sleeps);
  add("shm.unwatched", connections.unwatched);
  if (shm.connections().shown()) {
    add("shm.shared_bytes", shm.connections().shown()->remapped.bytes());
    add("shm.huge_bytes", shm.connections().shown()->remapped.huge_bytes());
  }
  for (std::size_t i = 0; i < connections.processes.size(); ++i)
    facts.counters.push_back({fmt::format("shm.process.{}", CrossMemory::kNames[i]), connections.processes[i]});
  shm.for_each_peer([&](const base::SocketAddress& address, const Connection& peer) {
    if (facts.peers.size() < observe::EngineFacts::kPeersInFacts)
      facts.peers.push_back({.address = address,
                             .path = "shm",
                             .path_reason = {},
                             .memory_reason = std::string(CrossMemory::reason(peer.process.denial())),
                             .is_connected = true});
  });
}

}  // namespace fairlead::shm
