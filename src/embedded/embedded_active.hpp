#pragma once
// Active messages of an engine of this process. Calls that enter the engine take its lock.

#include "embedded/driver.hpp"
#include "engine/active.hpp"
#include "engine/active_state.hpp"

namespace fairlead::embedded {

class EmbeddedActive final : public engine::ActivePorts {
 public:
  explicit EmbeddedActive(Driver& driver) : driver_(driver) {}

  Status activate(engine::PortHandle port) override;
  Status set_access(engine::PortHandle port, const engine::AccessRule& rule) override;
  Status set_segment(engine::PortHandle port, const engine::Segment& segment) override;
  bool is_copied(std::uint64_t length) const override {
    return length <= driver_.engine().options().get(engine::Option::embedded_max);
  }
  Status send_active(engine::PortHandle port, const engine::ActiveMessage& message,
                     engine::Conversation& conversation) override;
  void forget_request(engine::PortHandle port, std::uint64_t name) override;
  engine::Arrival* next_arrival(engine::PortHandle port) override { return active_of(port).next(); }
  void release_arrival(engine::PortHandle port, engine::Arrival& arrival) override { active_of(port).release(arrival); }
  bool has_arrival(engine::PortHandle port) const override { return active_of(port).has_ready(); }
  bool wait_any(std::span<const engine::PortHandle> ports, base::Instant deadline) override;
  std::uint64_t losses() const override { return driver_.engine().active().losses().count(); }
  bool next_loss(std::uint64_t& seen, engine::PeerLoss& loss) override;
  void ask_peer(const base::SocketAddress& engine) override;

  // For the host engine, which passes messages on to the process that owns a port.
  /// Makes the port accept active messages within these bounds, or those of the options if they are lower.
  Status activate(engine::PortHandle port, const engine::ActivePort::Bounds& bounds);
  /// As ActiveMessages::leave() and refuse().
  void leave(engine::PortHandle port, Status why);
  void refuse(engine::PortHandle port, const engine::UnansweredRequest& request, Status status);
  /// For a restored port; as in ActiveHandover.
  bool give_segment(engine::PortHandle port, const engine::Segment& segment);
  bool give_arrival(engine::PortHandle port, const engine::ArrivalState& arrival);
  /// Cancels all operations of the port. Their completions follow.
  void cancel_all(engine::PortHandle port);

 private:
  engine::ActivePort& active_of(engine::PortHandle handle) const {
    engine::Port& port = driver_.port(handle);
    ENSURE(port.active != nullptr, "port {} takes no active messages", port.number);
    return *port.active;
  }

  Driver& driver_;
};

}  // namespace fairlead::embedded
