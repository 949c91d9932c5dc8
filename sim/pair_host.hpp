#pragma once
// A host of the queue-pair swarm: an engine with memory that peers may access, one completion stream, and a port for
// active messages. It may be killed at any time. Its next life has the same address and memory and nothing else.

#include <sys/eventfd.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/engine.hpp"
#include "engine/handover.hpp"
#include "path/sim_network.hpp"
#include "qp/pairs_handover.hpp"
#include "sim/addresses.hpp"
#include "sim/findings.hpp"
#include "sim/machine.hpp"
#include "sim/random.hpp"
#include "sim/replacement.hpp"
#include "sim/seals.hpp"
#include "sim/trace.hpp"

namespace fairlead::sim {

using namespace std::chrono_literals;

inline constexpr std::uint32_t kActivePort = 0x410000;

struct PairHost {
  static constexpr std::size_t kMemory = 1 << 20;
  static constexpr std::uint32_t kRights = verbs::access::local_write | verbs::access::remote_write |
                                           verbs::access::remote_read | verbs::access::remote_atomic;
  static constexpr std::uint32_t kEvents = 256;

  std::uint32_t number = 0, life = 0;
  std::vector<std::byte> memory = std::vector<std::byte>(kMemory);
  std::unique_ptr<qp::NoticeStream> notices;  // outlives the engine that writes to it
  std::unique_ptr<engine::Engine> engine;
  qp::CompletionStream* stream = nullptr;
  std::uint32_t key = 0;
  engine::PortHandle port;
  bool is_replaceable = false;  // its region is as that of another process, and it has no port
  bool is_sealed = false;
  base::Instant replaced_by = base::kNever;  // the time limit of the replacement, or kNever

  bool is_up() const { return engine != nullptr; }
  qp::QueuePairs& pairs() const { return engine->pairs(); }
  engine::Port& active_port() const { return *engine->ports().find(port); }
  std::uint64_t address(std::size_t offset) const { return reinterpret_cast<std::uintptr_t>(memory.data()) + offset; }

  /// `machine` is null if the host is a machine by itself.
  void start(path::SimNetwork& network, const Machine* machine, const engine::EngineOptions& options, Random& random) {
    auto path = network.attach(address_of(number));
    ENSURE(path.has_value(), "host {}: {}", number, path.error().message);
    ++life;
    notices = std::make_unique<qp::NoticeStream>(base::FileDescriptor(::eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK)));
    const std::uint64_t epoch = random.next() | 1;
    auto shm = machine != nullptr ? machine->open_shm(address_of(number), epoch, options) : nullptr;
    engine = std::make_unique<engine::Engine>(std::move(*path), address_of(number), options, epoch, random.next(),
                                              std::move(shm),
                                              is_sealed ? std::optional(with_one_secret(epoch)) : std::nullopt);
    stream = pairs().open_completions({.capacity = 4096, .events = notices.get()});
    key = pairs().regions().add({.base = memory.data(),
                                 .length = memory.size(),
                                 .iova = address(0),
                                 .access = kRights,
                                 .domain = 1,
                                 .is_foreign = is_replaceable});
    replaced_by = base::kNever;
    if (is_replaceable) return;
    port = *engine->ports().open(kActivePort);
    ENSURE(active_port().events->reserve(kEvents) == Status::ok && engine->activate(port) == Status::ok,
           "no port for active messages");
    active_port().active->rule.kind = engine::AccessRule::Kind::all;
  }

  bool is_being_replaced() const { return replaced_by != base::kNever; }
  void begin_replacement(base::Instant until) {
    replaced_by = until;
    engine::Handover(*engine).hold_answers(true);
  }
  /// Its completions have been taken. Returns true if the engine is a new one now.
  bool try_to_replace(Sabotage& sabotage, base::Instant now) {
    // Another source of random bits: the engine's epoch and the time make it unique.
    const auto word = engine->epoch() ^ static_cast<std::uint64_t>(now.time_since_epoch().count());
    const Replaced replaced =
        replace(*engine, sabotage, now, is_sealed ? std::optional(with_one_secret(word)) : std::nullopt,
                [this](engine::Engine& made) { give(made.pairs()); });
    if (replaced == Replaced::later && now < replaced_by) return false;
    replaced_by = base::kNever;
    if (replaced != Replaced::done) engine::Handover(*engine).hold_answers(false);
    return replaced == Replaced::done;
  }
  /// Gives queue pairs that were handed over what they need.
  void give(qp::QueuePairs& made) {
    qp::PairsHandover handover(made);
    stream = nullptr;
    made.for_each([&](const qp::QueuePair& pair) {
      stream = handover.give_notices(qp::PairHandle{pair.index, pair.generation}, notices.get(), 0);
    });
    if (stream == nullptr) stream = made.open_completions({.capacity = 4096});
    stream->tell_overruns_to(notices.get(), 0);
    ENSURE(stream->grow(4096) && handover.give_memory(key, memory.data(), memory.size()), "host {} lacks memory",
           number);
  }

  void kill() {
    engine.reset();
    notices.reset();
    stream = nullptr;
  }
};

/// State that all parts of a run share.
struct PairShared {
  std::vector<PairHost>& hosts;
  Random& random;
  Findings& findings;
  Trace& trace;
  base::Instant now{};
  std::uint32_t honest = 0;  // so many hosts are; one that lies comes behind them
  bool had_faults = false;   // from then on, requests may fail
  bool is_ending = false;    // nothing new begins

  /// Returns whether one of the two hosts was told that its session with the other one ended. Several losses in a row
  /// may last longer than a short give-up time.
  bool has_lost(std::uint32_t one, std::uint32_t other) const {
    const auto is_told = [&](std::uint32_t host, std::uint32_t of) {
      if (!hosts[host].is_up()) return true;
      const engine::PeerLosses& losses = hosts[host].engine->active().losses();
      engine::PeerLoss loss;
      for (std::uint64_t seen = 0; losses.next(seen, loss);) {
        if (loss.engine == address_of(of)) return true;
      }
      return false;
    };
    return is_told(one, other) || is_told(other, one);
  }
};

}  // namespace fairlead::sim
