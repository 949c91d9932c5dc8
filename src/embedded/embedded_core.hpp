#pragma once
// The interface of an engine of this process for the APIs. Calls that enter the engine take its lock
// (embedded/driver.hpp).

#include <memory>
#include <optional>

#include "embedded/driver.hpp"
#include "embedded/embedded_active.hpp"
#include "embedded/embedded_keys.hpp"
#include "embedded/embedded_pairs.hpp"
#include "embedded/frozen_engine.hpp"
#include "engine/core.hpp"

namespace fairlead::embedded {

class EmbeddedCore final : public engine::Core {
 public:
  /// `keys`: the key files, if sessions are sealed.
  EmbeddedCore(std::unique_ptr<engine::Engine> engine, base::FileDescriptor kick, base::LogFile log,
               const std::optional<seal::KeyringFiles>& keys);
  ~EmbeddedCore() override;
  /// Starts the engine's thread, if there is a path. Called once.
  Result<> start() { return driver_.start(); }

  // The handover to the next program in this process (engine/handover.hpp).
  void part_from_local_peers(bool is_parting);
  bool has_parted(std::string& why) const;
  void meet_again(const engine::EngineState& state);
  void hold_answers(bool is_held);
  bool is_still() const;
  std::unique_ptr<FrozenEngine> freeze() { return std::make_unique<FrozenEngine>(driver_); }
  /// Called before start().
  Result<> restore(const engine::EngineState& state);
  bool has_port(engine::PortHandle port) const;
  bool give_memory(engine::PortHandle port, engine::OperationHandle operation, std::uint64_t cookie,
                   std::span<const iovec> memory);
  /// Called when all has its memory, before start(). Returns an error if something has none.
  Result<> finish(const engine::EngineState& state);
  void disarm_descriptor(engine::PortHandle port) { driver_.port(port).waiter->disarm(); }
  Driver& driver() { return driver_; }

  EmbeddedPairs& own_pairs() { return pairs_; }
  EmbeddedActive& own_active() { return active_; }
  EmbeddedKeys& own_keys() { return keys_; }

  base::SocketAddress address() const override { return driver_.engine().address(); }
  std::uint64_t epoch() const override { return driver_.engine().epoch(); }
  const engine::EngineOptions* options() const override { return &driver_.engine().options(); }
  std::uint64_t message_size_max() const override { return kMessageSizeMax; }
  Result<engine::PortHandle> open_port(std::uint32_t number) override;
  Result<engine::PortHandle> open_port_dynamic(std::uint32_t first, std::uint32_t count,
                                               std::uint32_t& number) override;
  void close_port(engine::PortHandle port) override;
  Status reserve_events(engine::PortHandle port, std::uint32_t count) override;
  void release_events(engine::PortHandle port, std::uint32_t count) override;
  Status post_receive(engine::PortHandle port, const engine::Receive& receive,
                      engine::OperationHandle& operation) override;
  void set_spares(engine::PortHandle port, const engine::SparePlan& plan) override;
  void grant_spares(engine::PortHandle port, std::uint32_t count) override;
  engine::SpareCounts spare_counts(engine::PortHandle port) const override;
  Status send(engine::PortHandle port, const engine::Send& send, engine::OperationHandle& operation) override;
  std::size_t send_all(engine::PortHandle port, const engine::RemotePort& to, std::span<const link::SendPart> parts,
                       std::span<engine::OperationHandle> operations, Status& status) override;
  Status expose(engine::PortHandle port, const engine::Exposure& exposure, engine::OperationHandle& operation,
                std::uint64_t& key) override;
  Status put(engine::PortHandle port, const engine::Transfer& transfer, engine::OperationHandle& operation) override;
  Status get(engine::PortHandle port, const engine::Transfer& transfer, engine::OperationHandle& operation) override;
  bool cancel(engine::PortHandle port, engine::OperationHandle operation) override;
  bool progress() override { return driver_.engine().path() != nullptr && driver_.look(); }
  void give_way() override { driver_.give_way(); }
  std::size_t poll(engine::PortHandle port, std::span<engine::Completion> to) override;
  std::size_t next_events(engine::PortHandle port, std::span<engine::Completion> to) override;
  bool has_event(engine::PortHandle port) const override;
  bool wait(engine::PortHandle port, base::Instant deadline) override;
  void interrupt(engine::PortHandle port) override;
  int descriptor(engine::PortHandle port) const override;
  bool arm_descriptor(engine::PortHandle port) override;
  engine::ActivePorts* active_ports() override { return &active_; }
  qp::PairCore* pairs() override { return &pairs_; }
  AllocateShared allocate_shared() override;
  engine::LoanView loan(std::uint64_t name) override { return driver_.engine().messages().loan(name); }
  void give_back(engine::PortHandle port, std::uint64_t name) override;
  void take_leave() override { driver_.take_leave(); }
  void watch_drops(engine::PortHandle port) override;
  void watch_losses(engine::PortHandle port) override { driver_.port(port).watches_losses = true; }
  std::uint64_t dropped_no_buffer(engine::PortHandle port) const override;
  observe::EngineFacts facts() const override;
  std::string describe_failure(const base::SocketAddress& address, Status status) const override;
  transport::PeerFacts peer_facts(const base::SocketAddress& address) const override;
  std::string describe_flight(const base::SocketAddress& address) const override;

 private:
  static constexpr std::uint64_t kMessageSizeMax = 1ULL << 40;

  std::size_t send_short(engine::PortHandle port, const engine::RemotePort& to, std::span<const link::SendPart> parts,
                         std::span<engine::OperationHandle> operations, base::Instant known);

  Driver driver_;
  EmbeddedActive active_{driver_};
  EmbeddedPairs pairs_{driver_};
  EmbeddedKeys keys_{driver_};
};

}  // namespace fairlead::embedded
