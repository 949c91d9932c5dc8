// The engine's facts for people: counters by name, and descriptions of peers.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "engine/counter_catalog.hpp"
#include "engine/engine.hpp"
#include "link/link_counter_rows.hpp"
#include "path/fault_counters.hpp"
#include "path/path_counter_rows.hpp"
#include "qp/queue_pairs.hpp"
#include "shm/transport_facts.hpp"

namespace fairlead::engine {
namespace {

double seconds(base::Duration duration) {
  return std::chrono::duration<double>(duration).count();
}
double milliseconds(base::Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

void add_offences(const transport::Offences& offences, observe::EngineFacts& facts) {
  using transport::Offence;
  const auto add = [&](std::string name, std::uint64_t value) { facts.counters.push_back({std::move(name), value}); };
  for (std::size_t i = 0; i < transport::Offences::kKinds; ++i) {
    const auto secret = static_cast<transport::Secret>(i);
    add(fmt::format("engine.wrong_secrets.{}", to_string(secret)), offences.wrong_secrets(secret));
  }
  for (const Offence offence : {Offence::holds_memory, Offence::guesses, Offence::takes_no_answers})
    add(fmt::format("engine.expelled.{}", to_string(offence)), offences.expelled_for(offence));
}

void add_link(const link::LinkCounters& counters, observe::EngineFacts& facts) {
  facts.add("link.", link::kLinkCounterRows, counters);
  for (std::size_t i = 0; i < counters.malformed.size(); ++i)
    facts.counters.push_back({malformed_name(static_cast<wire::DropReason>(i)), counters.malformed[i]});
  for (std::size_t i = 0; i < counters.refused.size(); ++i)
    facts.counters.push_back({refused_name(static_cast<link::Refusal>(i)), counters.refused[i]});
}

observe::PairFact fact_of(const qp::QueuePair& pair) {
  constexpr std::array<std::string_view, 7> kStates{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  return {.number = pair.number,
          .peer_number = pair.attributes.dest_qp_num,
          .type = pair.is(verbs::QpType::rc)   ? "RC"
                  : pair.is(verbs::QpType::uc) ? "UC"
                                               : "UD",
          .state = kStates[static_cast<std::size_t>(pair.state())],
          .peer = pair.route.address,
          .requests = count_between(pair.sends.head(), pair.sends.tail()),
          .in_flight = count_between(pair.sends.head(), pair.sends.next())};
}

std::string probe_text(std::uint32_t longest) {
  return longest == 0 ? std::string() : fmt::format(" there, of {} bytes back", longest);
}

bool is_shared(const transport::Transports& transports, const base::SocketAddress& address) {
  return transports.shm_transport() != nullptr && transports.shm_transport()->find(address);
}

/// Returns whether an engine answers at the address.
bool is_met(const transport::Transports& transports, const base::SocketAddress& address) {
  if (is_shared(transports, address)) return true;
  const auto peer = transports.link().find(address);
  return peer && transports.link().facts(*peer).is_connected;
}

/// Describes a peer that is not lost. With a remedy if an operation with it has failed.
std::string describe_present(const transport::Transports& transports, const base::SocketAddress& address,
                             base::Instant now, bool has_failed) {
  if (is_shared(transports, address))
    return fmt::format("{} is reached through shared memory{}", address.to_string(),
                       has_failed ? ": is its process stopped?" : "");
  const auto peer = transports.link().find(address);
  if (!peer) return {};
  const link::PeerFacts facts = transports.link().facts(*peer);
  const std::string release = transport::release_text(facts.release);
  if (!facts.is_connected) return fmt::format("{} has not answered yet: is the peer running?", address.to_string());
  return fmt::format(
      "{} was last heard {:.1f} s ago (rtt {:.3f} ms, rto {:.1f} ms, {} segments in flight, datagrams of up to {} "
      "bytes{}{}{})",
      address.to_string(), seconds(now - facts.last_heard), milliseconds(facts.round_trip),
      milliseconds(facts.resend_after), facts.segments_in_flight, facts.datagram_size, probe_text(facts.longest_probe),
      release.empty() ? "" : ", release ", release);
}

}  // namespace

observe::EngineFacts Engine::facts() const {
  observe::EngineFacts facts;
  facts.path = transports_ ? transports_->path().name() : "self";
  facts.add("engine.", kEngineCounterRows, messages_.counters());
  facts.add("engine.active.", kActiveCounterRows, active_.counters());
  facts.add("qp.", qp::kPairCounterRows, pairs_ ? pairs_->counters() : qp::PairCounters());
  facts.counters.push_back({"qp.regions", pairs_ ? pairs_->regions().used() : 0});
  if (!transports_) return facts;
  add_offences(transports_->offences(), facts);
  facts.counters.push_back({"engine.trains_not_taken", transports_->trains_not_taken()});
  facts.add("path.", path::kPathCounterRows, transports_->path().counters());
  if (const path::FaultCounters* faults = transports_->path().fault_counters(); faults != nullptr)
    facts.add("path.fault.", path::kFaultCounterRows, *faults);
  add_link(transports_->link().counters(), facts);
  if (shm_transport()) shm::add_transport(*shm_transport(), facts);
  facts.peers_total += transports_->link().peer_count();
  transports_->link().for_each_peer(observe::EngineFacts::kPeersInFacts, [&](const link::PeerFacts& peer) {
    const base::Instant heard = std::max(peer.last_heard, peer.opening_since);
    facts.peers.push_back({.address = peer.address,
                           .path_reason = transports_->why_not_shared(peer.address),
                           .is_connected = peer.is_connected,
                           .round_trip = peer.round_trip,
                           .silent_for = heard == base::Instant{} ? base::Duration{} : now_ - heard,
                           .bytes_in_flight = peer.bytes_in_flight});
  });
  return facts;
}

observe::EngineStats Engine::stats(bool wants_flights) {
  constexpr std::size_t kMost = observe::EngineStats::kMost;
  observe::EngineStats stats;
  stats.facts = facts();
  ports_.for_each([&](std::uint32_t, const Port& port) {
    if (++stats.ports_total > kMost) return;
    stats.ports.push_back({.number = port.number,
                           .operations = port.operations,
                           .dropped_no_buffer = port.dropped_no_buffer.load(std::memory_order_relaxed),
                           .takes_active = port.active != nullptr});
  });
  if (pairs_) {
    pairs_->for_each([&](const qp::QueuePair& pair) {
      if (++stats.pairs_total <= kMost) stats.pairs.push_back(fact_of(pair));
    });
  }
  if (transports_ && wants_flights) stats.flights = transports_->flight().flights();
  return stats;
}

std::string Engine::describe_peer(const base::SocketAddress& address, base::Instant now, Status status) const {
  std::string text = lost_peers_.describe(address, now);
  const bool is_there = text.empty() && (!transports_ || is_met(*transports_, address));
  if (!transports_ || (is_there && status == Status::refused)) return text;
  if (text.empty()) text = describe_present(*transports_, address, now, status != Status::ok);
  const auto peer = transports_->link().find(address);
  if (peer && transports_->link().facts(*peer).is_translated) text += fmt::format("; {}", kNat);
  return text;
}

transport::PeerFacts Engine::peer_facts(const base::SocketAddress& address) const {
  transport::PeerFacts facts{.problem = lost_peers_.problem(address),
                             .is_met = !transports_ || is_met(*transports_, address)};
  const auto peer = transports_ ? transports_->link().find(address) : std::nullopt;
  if (!peer) return facts;
  const link::PeerFacts of_link = transports_->link().facts(*peer);
  facts.is_translated = of_link.is_translated;
  if (!of_link.is_connected || is_shared(*transports_, address)) return facts;
  facts.release = of_link.release;
  facts.datagram_size = of_link.datagram_size;
  facts.longest_probe = of_link.longest_probe;
  return facts;
}

std::string Engine::describe_flight(const base::SocketAddress& address, base::Instant now) const {
  if (!transports_) return {};
  const auto peer = transports_->link().find(address);
  return peer ? transports_->flight().describe(*peer, now) : std::string();
}

}  // namespace fairlead::engine
