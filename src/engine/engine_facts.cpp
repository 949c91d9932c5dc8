// What the engine can tell people: counters by name, and sentences about peers.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "engine/counter_catalog.hpp"
#include "engine/engine.hpp"
#include "link/link_counter_rows.hpp"
#include "path/fault_counters.hpp"
#include "path/path_counter_rows.hpp"
#include "shm/transport_facts.hpp"
#include "wire/segment.hpp"

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

}  // namespace

observe::EngineFacts Engine::facts() const {
  observe::EngineFacts facts;
  facts.path = transports_ ? transports_->path().name() : "self";
  facts.add("engine.", kEngineCounterRows, counters_);
  facts.add("engine.active.", kActiveCounterRows, active_.counters());
  if (!transports_) return facts;
  add_offences(transports_->offences(), facts);
  facts.counters.push_back({"engine.trains_not_taken", transports_->trains_not_taken()});
  facts.add("path.", path::kPathCounterRows, transports_->path().counters());
  if (const path::FaultCounters* faults = transports_->path().fault_counters(); faults != nullptr)
    facts.add("path.fault.", path::kFaultCounterRows, *faults);
  add_link(transports_->link().counters(), facts);
  if (shm_transport()) shm::add_transport(*shm_transport(), facts);
  transports_->link().for_each_peer(observe::EngineFacts::kPeersInFacts, [&](const link::PeerFacts& peer) {
    const base::Instant heard = std::max(peer.last_heard, peer.opening_since);
    facts.peers.push_back({.address = peer.address,
                           .path_reason = shm_transport() ? shm_transport()->reason(peer.address) : std::string(),
                           .is_connected = peer.is_connected,
                           .round_trip = peer.round_trip,
                           .silent_for = heard == base::Instant{} ? base::Duration{} : now_ - heard,
                           .bytes_in_flight = peer.bytes_in_flight});
  });
  return facts;
}

std::string Engine::describe_peer(const base::SocketAddress& address, base::Instant now) const {
  const auto loss = losses_.find(address);
  if (loss != losses_.end()) {
    const link::Notice& notice = loss->second.notice;
    const double ago = seconds(now - loss->second.when);
    if (loss->second.offence != transport::Offence::none) {
      return fmt::format("we put {} out {:.1f} s ago: it {}", address.to_string(), ago, describe(loss->second.offence));
    }
    if (loss->second.has_left) {
      return fmt::format("{} ended {:.1f} s ago, as it said before: start it again", address.to_string(), ago);
    }
    if (notice.diagnosis == link::Diagnosis::no_route) {
      return fmt::format(
          "no way to {} ({:.1f} s ago): this host has no route to it, or no host answers at that address: check the "
          "address, `ip route get` and the interfaces",
          address.to_string(), ago);
    }
    if (notice.diagnosis == link::Diagnosis::not_let_out) {
      return fmt::format(
          "a firewall of this host drops what goes to {} ({:.1f} s ago): see the output rules (`nft list ruleset`, "
          "`iptables -S OUTPUT`)",
          address.to_string(), ago);
    }
    if (notice.diagnosis == link::Diagnosis::too_long) {
      return fmt::format(
          "no ack from {} for {:.1f} s: short datagrams arrive, those of {} bytes do not: raise the MTU on the way to "
          "it",
          address.to_string(), seconds(notice.silent_for), wire::kDatagramSizeLeast);
    }
    if (notice.diagnosis == link::Diagnosis::stuck) {
      return fmt::format(
          "{} began a message and brought nothing more of it for {:.1f} s, though it is heard: is it overloaded? raise "
          "give_up_after if its path is that slow",
          address.to_string(), seconds(std::chrono::milliseconds(options_.get(Option::give_up_after))));
    }
    if (notice.diagnosis == link::Diagnosis::refused_there) {
      return fmt::format("{} refused to talk with us, it says ({:.1f} s ago): {}", address.to_string(), ago,
                         seal::to_string(notice.refused, seal::Teller::refused));
    }
    if (notice.diagnosis == link::Diagnosis::refused_here) {
      const bool is_unknown = notice.refused == seal::Refused::unknown_key;
      return fmt::format("{} has to be greeted sealed, and is not: {}", address.to_string(),
                         is_unknown ? "our known peers have no public key for it, add its line (`fairlead keygen "
                                      "--public` there)"
                                    : "there is no key here, or one that is worth nothing");
    }
    if (notice.diagnosis == link::Diagnosis::keys_not_changed) {
      return fmt::format(
          "the session with {} ended ({:.1f} s ago): it made no new keys with us, so one of the two does "
          "not accept the other's key any more",
          address.to_string(), ago);
    }
    if (notice.diagnosis == link::Diagnosis::one_direction) {
      return fmt::format(
          "{} is heard, but does not hear us ({:.1f} s, {} resends): look for a firewall or a route that lets "
          "datagrams "
          "pass in one direction only",
          address.to_string(), ago, notice.resends);
    }
    switch (notice.status) {
      case Status::unreachable:
        return fmt::format("never heard from {} in {:.1f} s ({} attempts): is the peer running, and its address right?",
                           address.to_string(), seconds(notice.silent_for), notice.resends + 1);
      case Status::refused:
        return fmt::format("nobody listens at {} ({:.1f} s ago): start the peer, or check the port",
                           address.to_string(), ago);
      case Status::restarted:
        return fmt::format("{} restarted {:.1f} s ago: what was pending to its earlier life is lost; connect again",
                           address.to_string(), ago);
      default:
        return fmt::format(
            "no ack from {} for {:.1f} s (rto {:.1f} ms, {} resends, last heard {:.1f} s ago): is the peer running?",
            address.to_string(), seconds(notice.silent_for), milliseconds(notice.resend_after), notice.resends,
            seconds(notice.silent_for) + ago);
    }
  }
  if (!transports_) return {};
  if (shm_transport() && shm_transport()->find(address))
    return fmt::format("{} is reached through shared memory: is its process stopped?", address.to_string());
  const auto peer = transports_->link().find(address);
  if (!peer) return {};
  const link::PeerFacts facts = transports_->link().facts(*peer);
  if (!facts.is_connected) return fmt::format("{} has not answered yet: is the peer running?", address.to_string());
  return fmt::format(
      "{} was last heard {:.1f} s ago (rtt {:.3f} ms, rto {:.1f} ms, {} segments in flight, datagrams of up to {} "
      "bytes)",
      address.to_string(), seconds(now - facts.last_heard), milliseconds(facts.round_trip),
      milliseconds(facts.resend_after), facts.segments_in_flight, facts.datagram_size);
}

std::string Engine::describe_flight(const base::SocketAddress& address, base::Instant now) const {
  if (!transports_) return {};
  const auto peer = transports_->link().find(address);
  return peer ? transports_->flight().describe(*peer, now) : std::string();
}

}  // namespace fairlead::engine
