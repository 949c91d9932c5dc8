#include "sim/expulsions.hpp"

#include "sim/addresses.hpp"
#include "sim/quantity.hpp"

namespace fairlead::sim {
namespace {

bool has_connection(const shm::Connections& connections, std::uint32_t slot, std::uint32_t generation) {
  const shm::Connection& peer = connections.peer(slot);
  return peer.generation == generation && peer.state == shm::Connection::State::open;
}

}  // namespace

void Expulsions::await(std::uint32_t victim, engine::Engine& engine, std::uint32_t liar, std::uint64_t line,
                       base::Instant now) {
  const shm::Connections& connections = *engine.connections();
  const std::uint32_t slot = connections.find(address_of(liar));
  if (slot == shm::Connections::kNone) return;
  const shm::Connection& peer = connections.peer(slot);
  // The lie may have gone to a connection that the victim has replaced by another one.
  if (peer.state != shm::Connection::State::open || !peer.reader.has_record()) return;
  awaited_.push_back({.victim = victim,
                      .liar = liar,
                      .epoch = engine.epoch(),
                      .slot = slot,
                      .generation = peer.generation,
                      .line = line,
                      .refused = connections.counters().refused_record,
                      .due = now + kWithin});
}

void Expulsions::check(std::uint32_t victim, engine::Engine* engine, Findings& findings) {
  std::erase_if(awaited_, [&](const Awaited& one) {
    if (one.victim != victim) return false;
    if (engine == nullptr || engine->epoch() != one.epoch) return true;
    const shm::Connections& connections = *engine->connections();
    if (!has_connection(connections, one.slot, one.generation)) {
      count_ += connections.counters().refused_record > one.refused;
      return true;
    }
    SIM_CHECK(findings, connections.peer(one.slot).reader.read() < one.line,
              "host {} has not expelled host {}, whose invalid record it has read", one.victim, one.liar);
    return false;
  });
}

void Expulsions::check_time(std::uint32_t victim, base::Instant now, Findings& findings) const {
  for (const Awaited& one : awaited_) {
    SIM_CHECK(findings, one.victim != victim || now < one.due,
              "host {} has not expelled host {}, which wrote an invalid record more than {} ago", one.victim, one.liar,
              to_text(kWithin));
  }
}

}  // namespace fairlead::sim
