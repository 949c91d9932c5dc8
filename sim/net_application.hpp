#pragma once
// One transfer machine of a swarm with its buffers, and the expected state of their operations.

#include <array>
#include <map>
#include <memory>
#include <vector>

#include <fairlead/net.hpp>

#include "sim/findings.hpp"
#include "sim/net_world.hpp"
#include "sim/trace.hpp"

namespace fairlead::sim {

/// Memory that a machine has exposed. It may have ended by now.
struct NetOffer {
  net::BufferDescriptor descriptor;
  net::QueueKind kind = net::QueueKind::passive_bulk_receive;
  std::uint64_t operation = 0;
  std::uint64_t size = 0;
};

/// Bytes in transit between applications, by the number of the sending operation.
struct NetSending {
  std::uint32_t to = 0;  // message: the machine's number; put: the number of the offer's operation
  std::uint64_t size = 0;
  std::string sender;
  bool has_arrived = false;
  bool has_ended_well = false;
};

/// State that all applications of a swarm share.
struct NetShared {
  NetShared(NetWorld& its_world, Random& its_random, Findings& its_findings, Trace& its_trace)
      : world(its_world), random(its_random), findings(its_findings), trace(its_trace) {}

  NetWorld& world;
  Random& random;
  Findings& findings;
  Trace& trace;
  std::uint64_t operations = 0, succeeded = 0, restarts = 0;
  std::vector<NetOffer> offers;
  std::map<std::uint64_t, NetSending> messages, puts;
};

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
    bool is_open = false;  // an operation of this application is under way
    net::QueueKind kind = net::QueueKind::message_receive;
    std::uint64_t operation = 0;
    std::uint64_t length = 0;       // bytes that it sends or may receive
    std::uint64_t other = 0;        // active: the offer's operation
    std::uint64_t end_of_last = 0;  // message_receive: no later message begins before this offset
    std::uint32_t messages_left = 0;
    bool is_end_asked = false;
    fairlead::Instant added, deadline = fairlead::kNever;
  };
  struct Book {
    std::uint64_t adds = 0, ends = 0;
  };

  void make_machine();
  void start();
  void restart();
  void submit(Slot& slot, const std::vector<std::string>& peers);
  Status submit_kind(Slot& slot, const std::vector<std::string>& peers);
  void on_event(Slot& slot, const net::BufferEvent& event);
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
  std::uint32_t started_told_ = 0, stopped_told_ = 0;
  std::unique_ptr<net::TransferMachine> machine_;
  std::array<Slot, 12> slots_;
  std::array<Book, net::kQueueKinds> books_{};
};

}  // namespace fairlead::sim
