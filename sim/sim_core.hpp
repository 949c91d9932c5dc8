#pragma once
// A Core over a passive engine on virtual time, as EmbeddedCore is one in real time. The public interfaces use it in a
// simulation. Single-threaded; calls that wait let the world proceed.

#include <functional>
#include <memory>

#include "engine/core.hpp"
#include "engine/engine.hpp"
#include "path/sim_path.hpp"
#include "sim/machine.hpp"

namespace fairlead::sim {

class SimCore final : public engine::Core {
 public:
  struct World {
    std::function<base::Instant()> now;
    std::function<void()> pass_time;
  };
  /// `path` belongs to the engine.
  SimCore(std::unique_ptr<engine::Engine> engine, path::SimPath& path, World world)
      : engine_(std::move(engine)), path_(path), world_(std::move(world)) {}
  ~SimCore() override { engine_->farewell(now()); }

  /// Returns when a pass is due at the latest.
  base::Instant next_pass() const {
    const bool has_news = path_.has_arrivals() || (engine_->connections() != nullptr && Machine::has_news(*engine_));
    return has_news ? now() : engine_->next_deadline();
  }
  engine::Engine& engine() { return *engine_; }

  base::SocketAddress address() const override { return engine_->address(); }
  std::uint64_t epoch() const override { return engine_->epoch(); }
  std::uint64_t message_size_max() const override { return kMessageSizeMax; }
  Result<engine::PortHandle> open_port(std::uint32_t number) override { return engine_->ports().open(number); }
  Result<engine::PortHandle> open_port_dynamic(std::uint32_t first, std::uint32_t count,
                                               std::uint32_t& number) override {
    return engine_->ports().open_dynamic(first, count, number);
  }
  void close_port(engine::PortHandle port) override;
  Status reserve_events(engine::PortHandle port, std::uint32_t count) override;
  void release_events(engine::PortHandle port, std::uint32_t count) override;
  Status post_receive(engine::PortHandle port, const engine::Receive& receive,
                      engine::OperationHandle& operation) override {
    return engine_->messages().post_receive(port, receive, operation);
  }
  void set_spares(engine::PortHandle port, const engine::SparePlan& plan) override {
    engine_->set_spares(port, plan, now());
  }
  void grant_spares(engine::PortHandle port, std::uint32_t count) override {
    engine_->ports().find(port)->spares_granted += count;
  }
  engine::SpareCounts spare_counts(engine::PortHandle port) const override {
    return engine_->messages().spare_counts(port);
  }
  Status send(engine::PortHandle port, const engine::Send& send, engine::OperationHandle& operation) override;
  Status expose(engine::PortHandle port, const engine::Exposure& exposure, engine::OperationHandle& operation,
                std::uint64_t& key) override {
    return engine_->messages().expose(port, exposure, operation, key);
  }
  Status put(engine::PortHandle port, const engine::Transfer& transfer, engine::OperationHandle& operation) override {
    return engine_->messages().transfer(port, engine::OperationKind::put, transfer, operation, now());
  }
  Status get(engine::PortHandle port, const engine::Transfer& transfer, engine::OperationHandle& operation) override {
    return engine_->messages().transfer(port, engine::OperationKind::get, transfer, operation, now());
  }
  bool cancel(engine::PortHandle port, engine::OperationHandle operation) override {
    return engine_->cancel(port, operation, now());
  }
  bool progress() override;
  std::size_t send_all(engine::PortHandle port, const engine::RemotePort& to, std::span<const link::SendPart> parts,
                       std::span<engine::OperationHandle> operations, Status& status) override;
  std::size_t next_events(engine::PortHandle port, std::span<engine::Completion> to) override;
  bool has_event(engine::PortHandle port) const override { return !engine_->ports().find(port)->events->is_empty(); }
  bool wait(engine::PortHandle port, base::Instant deadline) override;
  void interrupt(engine::PortHandle) override {}
  int descriptor(engine::PortHandle) const override { return -1; }
  bool arm_descriptor(engine::PortHandle) override { return false; }
  void watch_drops(engine::PortHandle port) override { engine_->ports().find(port)->watches_drops = true; }
  std::uint64_t dropped_no_buffer(engine::PortHandle port) const override {
    return engine_->ports().find(port)->dropped_no_buffer;
  }
  observe::EngineFacts facts() const override { return engine_->facts(); }
  std::string describe_failure(const base::SocketAddress& address, Status status) const override {
    return engine_->describe_peer(address, now(), status);
  }
  transport::PeerFacts peer_facts(const base::SocketAddress& address) const override {
    return engine_->peer_facts(address);
  }
  std::string describe_flight(const base::SocketAddress& address) const override {
    return engine_->describe_flight(address, now());
  }

 private:
  static constexpr std::uint64_t kMessageSizeMax = 1ULL << 40;

  base::Instant now() const { return world_.now(); }

  std::unique_ptr<engine::Engine> engine_;
  path::SimPath& path_;
  World world_;
};

}  // namespace fairlead::sim
