#include "sim/net_world.hpp"
#include "sim/seals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace fairlead::sim {
namespace {

constexpr base::Duration kPause = std::chrono::milliseconds(10);  // longest step, so that waiting calls look again
constexpr base::Duration kTick = std::chrono::nanoseconds(100);   // shortest step

}  // namespace

NetWorld::NetWorld(std::uint64_t seed, const engine::EngineOptions& options, bool is_one_machine, bool is_sealed)
    : random_(seed), options_(options), network_(random_.next()), is_sealed_(is_sealed) {
  if (is_one_machine) machine_.emplace();
}

std::string NetWorld::address(std::uint32_t host, std::uint32_t tmid) {
  return fmt::format("10.0.0.{}@udp:20480:34:{}", host + 1, tmid);
}

net::Domain NetWorld::add_host() {
  const std::size_t number = hosts_.size();
  auto state = std::make_shared<net::DomainState>();
  state->options = options_;
  state->attach = [this, number](const base::SocketAddress& local, const engine::EngineOptions& options) {
    return attach(number, local, options);
  };
  state->simulation = net::Simulation{[this] { return public_now(); }, [this] { step(now_ + kPause); }};
  hosts_.push_back({state, {}});
  return net::DomainState::handle(state);
}

Result<std::shared_ptr<engine::Core>> NetWorld::attach(std::size_t number, const base::SocketAddress& local,
                                                       const engine::EngineOptions& options) {
  if (auto core = hosts_[number].core.lock()) return core;
  auto path = network_.attach(local);
  if (!path) return std::unexpected(std::move(path.error()));
  path::SimPath& own = **path;
  const std::uint64_t epoch = random_.next(), seed = random_.next();
  auto shm = machine_ ? machine_->open_shm(local, epoch, options) : nullptr;
  auto engine = std::make_unique<engine::Engine>(std::move(*path), local, options, epoch, seed, std::move(shm),
                                                 is_sealed_ ? std::optional(with_one_secret(epoch)) : std::nullopt);
  auto core = std::make_shared<SimCore>(std::move(engine), own,
                                        SimCore::World{[this] { return now_; }, [this] { step(now_ + kPause); }});
  hosts_[number].core = core;
  return core;
}

void NetWorld::step(base::Instant at_most) {
  base::Instant next = std::min({at_most, network_.next_event(), machines_next_});
  for (const Host& host : hosts_)
    if (const auto core = host.core.lock()) next = std::min(next, core->next_pass());
  now_ = std::max(now_ + kTick, next);
  network_.advance(now_);
  for (Host& host : hosts_) {
    const auto core = host.core.lock();
    if (core && core->next_pass() <= now_) core->progress();
    const shm::Transport* const shm = core ? std::as_const(core->engine()).shm_transport() : nullptr;
    if (shm != nullptr) host.through_memory = std::max(host.through_memory, shm->counters().messages_sent);
  }
  machines_next_ = base::kNever;
  for (const Host& host : hosts_)
    machines_next_ = std::min(machines_next_, net::to_engine(host.domain->step_machines()));
}

std::uint64_t NetWorld::through_memory() const {
  std::uint64_t sum = 0;
  for (const Host& host : hosts_) sum += host.through_memory;
  return sum;
}

}  // namespace fairlead::sim
