#pragma once
// One transfer machine of a swarm with its buffers, and the expected state of their operations.

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include <fairlead/net.hpp>

#include "sim/net_pool.hpp"
#include "sim/net_shared.hpp"
#include "sim/net_trials.hpp"

namespace fairlead::sim {

class NetApplication {
 public:
  NetApplication(NetShared& shared, net::Domain& domain, std::uint32_t number, std::string address);

  const std::string& address() const { return address_; }
  /// Performs one random action. `peers` contains all addresses, by number.
  void act(const std::vector<std::string>& peers);
  /// Call some time after the last action.
  void check_deadlines();
  /// Stops the machine; queued operations are cancelled.
  void begin_end();
  bool has_ended() const { return machine_->state() == net::MachineState::stopped; }
  /// Call after the end.
  void check_books();

 private:
  struct Slot {
    std::unique_ptr<net::Buffer> buffer;
    bool is_open = false;   // an operation of this application is under way
    bool is_going = false;  // the buffer is being destroyed
    net::QueueKind kind = net::QueueKind::message_receive;
    std::uint64_t operation = 0;
    std::uint64_t length = 0;  // bytes that it sends or may receive
    std::uint64_t other = 0;   // active: the offer's operation
    NetFilling filling;        // message_receive
    bool is_end_asked = false;
    fairlead::Instant added, deadline = fairlead::kNever;
  };
  struct Book {
    std::uint64_t adds = 0, ends = 0, bytes = 0;
  };

  void make_machine();
  void start();
  void restart();
  void submit(Slot& slot, const std::vector<std::string>& peers);
  Status submit_kind(Slot& slot, const std::vector<std::string>& peers);
  void on_event(Slot& slot, const net::BufferEvent& event);
  void on_pool_event(const net::BufferEvent& event, bool is_first);
  void check_turn(const net::BufferEvent& event);
  void check_arrival(Slot& slot, const net::BufferEvent& event);
  bool may_end_as(const Slot& slot, Status status) const;
  void on_machine_event(const net::MachineEvent& event);
  void renew(Slot& slot);

  NetShared& shared_;
  net::Domain& domain_;
  std::uint32_t number_;
  std::string address_;
  bool is_synchronous_;
  bool is_ending_ = false;
  bool is_calling_ = false;         // a callback is running
  fairlead::Instant last_event_{};  // of this machine
  const std::vector<std::string>* peers_ = nullptr;
  NetTrials trials_;
  std::optional<NetPool> pool_;  // outlives the machine
  net::EndPoint kept_;
  std::uint32_t started_told_ = 0, stopped_told_ = 0;
  std::unique_ptr<net::TransferMachine> machine_;
  std::array<Slot, 12> slots_;
  std::array<Book, net::kQueueKinds> books_{};
};

}  // namespace fairlead::sim
