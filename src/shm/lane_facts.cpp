#include "shm/lane_facts.hpp"

#include <fmt/format.h>

namespace fairlead::shm {

void add_lane(const Lane& lane, observe::EngineFacts& facts) {
  const auto add = [&](const char* name, std::uint64_t value) { facts.counters.push_back({name, value}); };
  const LaneCounters& own = lane.counters();
  add("lane.messages_sent", own.messages_sent);
  add("lane.bytes_sent", own.bytes_sent);
  add("lane.chunks_sent", own.chunks_sent);
  add("lane.messages_delivered", own.messages_delivered);
  add("lane.bytes_delivered", own.bytes_delivered);
  add("lane.messages_waited", own.messages_waited);
  add("lane.messages_pulled", own.messages_pulled);
  add("lane.messages_failed", own.messages_failed);
  const ShmCounters& hub = lane.hub().counters();
  add("lane.peers_opened", hub.opened);
  add("lane.peers_ended", hub.ended);
  add("lane.declined.user", hub.declined_user);
  add("lane.declined.greeting", hub.declined_greeting);
  add("lane.declined.address", hub.declined_address);
  add("lane.declined.proof", hub.declined_proof);
  add("lane.declined.late", hub.declined_late);
  add("lane.declined.crowd", hub.declined_crowd);
  add("lane.declined.full", hub.declined_full);
  add("lane.accepts_failed", hub.accepts_failed);
  add("lane.peers_put_out", hub.put_out);
  add("lane.refused_record", hub.refused_record);
  add("lane.sleeps", hub.sleeps);
  add("lane.unwatched", hub.unwatched);
  if (lane.hub().shown()) {
    add("lane.shared_bytes", lane.hub().shown()->sheets.bytes());
    add("lane.huge_bytes", lane.hub().shown()->sheets.huge_bytes());
  }
  for (std::size_t i = 0; i < hub.processes.size(); ++i)
    facts.counters.push_back({fmt::format("lane.process.{}", ForeignMemory::kNames[i]), hub.processes[i]});
  lane.for_each_peer([&](const base::SocketAddress& address, const ShmPeer& peer) {
    if (facts.peers.size() < observe::EngineFacts::kPeersInFacts)
      facts.peers.push_back({.address = address,
                             .path = "shm",
                             .path_reason = {},
                             .memory_reason = std::string(ForeignMemory::reason(peer.process.denial())),
                             .is_connected = true});
  });
}

}  // namespace fairlead::shm
