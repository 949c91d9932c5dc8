#pragma once
// Hosts with the real src/net on virtual time: domains and transfer machines as in applications, over whole engines and
// a simulated network. Nothing runs by itself: step() lets the next event happen.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "net/domain_state.hpp"
#include "path/sim_network.hpp"
#include "sim/random.hpp"
#include "sim/sim_core.hpp"

namespace fairlead::sim {

class NetWorld {
 public:
  /// `is_one_machine`: the hosts are processes that share memory. `is_sealed`: all hosts seal with one secret.
  NetWorld(std::uint64_t seed, const engine::EngineOptions& options, bool is_one_machine = false,
           bool is_sealed = false);

  base::Instant now() const { return now_; }
  fairlead::Instant public_now() const { return net::to_public(now_); }
  path::SimNetwork& network() { return network_; }

  /// Adds a host with a domain. Its machines' addresses begin with "10.x.y.z@udp:20480".
  net::Domain add_host();
  static std::string address(std::uint32_t host, std::uint32_t tmid);

  /// Messages between processes of one machine, counted for engines that lived at the last step.
  std::uint64_t through_memory() const;

  /// Processes the next datagram, timer or deadline, at the latest at `at_most`.
  void step(base::Instant at_most);

 private:
  struct Host {
    std::shared_ptr<net::DomainState> domain;
    std::weak_ptr<SimCore> core;  // while a machine holds it
    std::uint64_t through_memory = 0;
  };
  Result<std::shared_ptr<engine::Core>> attach(std::size_t host, const base::SocketAddress& local,
                                               const engine::EngineOptions& options);

  Random random_;
  engine::EngineOptions options_;
  path::SimNetwork network_;
  std::optional<Machine> machine_;
  const bool is_sealed_;
  base::Instant now_{std::chrono::seconds(1)};
  base::Instant machines_next_ = base::kNever;
  std::vector<Host> hosts_;
};

}  // namespace fairlead::sim
