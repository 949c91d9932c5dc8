#include "sim/net_swarm.hpp"

#include "base/ensure.hpp"
#include "sim/net_application.hpp"
#include "sim/seals.hpp"

namespace fairlead::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kExtras = 0x6578'7472'6173'2115;
constexpr base::Duration kQuiet = 3s;
constexpr base::Duration kNetEndsWithin = 60s;  // after the last action, on a healed network

path::SimLink draw_link(Random& random) {
  path::SimLink link;
  link.delay = random.between(1us, 200us);
  if (random.chance(0.6)) link.loss = random.share() * 0.05;
  if (random.chance(0.3)) link.loss_burst = 40;
  if (random.chance(0.4)) link.duplication = random.share() * 0.05;
  if (random.chance(0.4)) link.reordering = random.share() * 0.2;
  if (random.chance(0.3)) link.corruption = random.share() * 0.02;
  return link;
}

engine::EngineOptions draw_options(Random& random) {
  engine::EngineOptions options;
  const auto set = [&](engine::Option option, std::uint64_t value) {
    ENSURE(options.set(option, value).has_value(), "an option out of range");
  };
  set(engine::Option::give_up_after, random.between(200, 1000));
  set(engine::Option::unreachable_after, random.between(100, 500));
  if (random.chance(0.3)) set(engine::Option::window_segments, 64);
  return options;
}

}  // namespace

NetReport run_net_swarm(std::uint64_t seed) {
  Random random(seed);
  Findings findings;
  Trace trace(nullptr);
  engine::EngineOptions options = draw_options(random);
  const std::uint64_t world_seed = random.next();
  // Uses a generator of its own, so that the rest of a seed's world does not change.
  Random machine(~seed);
  const bool is_one_machine = machine.chance(0.35);
  ENSURE(!is_one_machine || (options.set(engine::Option::shm_ring, 64 << 10).has_value() &&
                             options.set(engine::Option::shm_shared_max, 8 << 20).has_value()),
         "an option out of range");
  Random seals(seed ^ kSeals);
  const bool is_sealed = seals.chance(0.35);
  ENSURE(!is_sealed || options.set(engine::Option::seal_rekey_bytes, 64 << 10).has_value(), "an option out of range");
  NetWorld world(world_seed, options, is_one_machine, is_sealed);
  Random extras(seed ^ kExtras);
  NetShared shared{world, random, extras, findings, trace};
  const base::Instant began = world.now();
  const path::SimLink usual = draw_link(random);
  world.network().set_default_link(usual);

  const auto hosts = static_cast<std::uint32_t>(random.between(2, 4));
  std::vector<net::Domain> domains;
  std::vector<std::string> peers;
  for (std::uint32_t host = 0; host < hosts; ++host) domains.push_back(world.add_host());
  std::vector<std::unique_ptr<NetApplication>> applications;
  for (std::uint32_t host = 0; host < hosts; ++host) {
    for (std::uint32_t tmid = 1; tmid <= random.between(1, 2); ++tmid) {
      const auto number = static_cast<std::uint32_t>(peers.size());
      peers.push_back(NetWorld::address(host, tmid));
      applications.push_back(std::make_unique<NetApplication>(shared, domains[host], number, peers.back()));
    }
  }

  base::Instant healed_at = base::kNever;
  const std::uint64_t actions = random.between(500, 4000);
  const auto pace = static_cast<std::int64_t>(random.between(2'000, 100'000));  // ns between two actions
  for (std::uint64_t action = 0; action < actions && findings.is_clean(); ++action) {
    const base::Instant until = world.now() + base::Duration(static_cast<std::int64_t>(random.below(2 * pace)));
    while (world.now() < until) world.step(until);
    applications[random.below(applications.size())]->act(peers);
    if (healed_at == base::kNever && random.chance(0.001)) {
      world.network().set_default_link({.loss = 1});
      healed_at = world.now() + random.between(1ms, 2s);
    }
    if (world.now() >= healed_at) {
      world.network().set_default_link(usual);
      healed_at = base::kNever;
    }
  }

  world.network().set_default_link({});
  const base::Instant quiet = world.now() + kQuiet;
  while (world.now() < quiet && findings.is_clean()) world.step(quiet);
  for (const auto& application : applications) application->check_deadlines();
  for (const auto& application : applications) application->begin_end();
  const base::Instant latest = world.now() + kNetEndsWithin;
  for (const auto& application : applications) {
    while (!application->has_ended() && world.now() < latest && findings.is_clean()) world.step(latest);
    SIM_CHECK(findings, application->has_ended(), "{} did not stop", application->address());
    if (findings.is_clean()) application->check_books();
  }
  for (const auto& [operation, put] : shared.puts)
    SIM_CHECK(findings, put.has_arrived || !put.has_ended_well, "put {} ended well and did not arrive", operation);
  return {.finding = findings.first(),
          .hash = trace.hash(),
          .operations = shared.operations,
          .succeeded = shared.succeeded,
          .restarts = shared.restarts,
          .statements = shared.statements,
          .through_memory = world.through_memory(),
          .time = world.now() - began};
}

}  // namespace fairlead::sim
