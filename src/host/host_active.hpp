#pragma once
// Active messages over the host engine, in the application. Requests to send go through the ring like all operations,
// and the library copies each message to the shared memory. Arrivals have a queue of their own for each port
// (client_active.hpp).
//
// A message is on its way when it is in the ring. The host engine tells later which association carries a request, by a
// cell in the shared memory; so a Conversation of this engine names only the request.

#include <cstdint>
#include <span>

#include "engine/active.hpp"
#include "host/host_core.hpp"

namespace fairlead::host {

class HostActive final : public engine::ActivePorts {
 public:
  explicit HostActive(HostCore& core) : core_(core) {}

  Status activate(engine::PortHandle port) override;
  Status set_access(engine::PortHandle port, const engine::AccessRule& rule) override;
  Status set_segment(engine::PortHandle port, const engine::Segment& segment) override;
  bool is_copied(std::uint64_t) const override { return false; }
  Status send_active(engine::PortHandle port, const engine::ActiveMessage& message,
                     engine::Conversation& conversation) override;
  void forget_request(engine::PortHandle port, std::uint64_t name) override;
  engine::Arrival* next_arrival(engine::PortHandle port) override;
  void release_arrival(engine::PortHandle port, engine::Arrival& arrival) override;
  bool has_arrival(engine::PortHandle port) const override { return active_of(port).has_arrival(); }
  bool wait_any(std::span<const engine::PortHandle> ports, base::Instant deadline) override {
    return core_.wait_any(ports, deadline);
  }
  std::uint64_t losses() const override;
  bool next_loss(std::uint64_t& seen, engine::PeerLoss& loss) override;
  bool has_ended(const engine::Conversation& conversation, const engine::PeerLoss& loss) const override;
  void ask_peer(const base::SocketAddress& engine) override;

 private:
  static constexpr std::uint64_t kHost = ~0ULL;  // the way of a loss: the host engine itself has ended

  bool tell(engine::PortHandle port, const Request& request);
  ClientActive& active_of(engine::PortHandle port) const;

  HostCore& core_;
};

}  // namespace fairlead::host
