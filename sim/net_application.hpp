#pragma once
// One transfer machine of a swarm with its buffers, and what is known of the operations they are in.

#include <array>
#include <map>
#include <memory>
#include <vector>

#include <fairlead/net.hpp>

#include "sim/findings.hpp"
#include "sim/net_world.hpp"
#include "sim/trace.hpp"

namespace fairlead::sim {

/// What some machine has exposed; it may be over by now.
struct NetOffer {
  net::BufferDescriptor descriptor;
  net::QueueKind kind = net::QueueKind::passive_bulk_receive;
  std::uint64_t operation = 0;
  std::uint64_t size = 0;
};

/// Bytes under way from one application to another, by the number of the operation that sent them.
struct NetSending {
  std::uint32_t to = 0;  // message: number of the machine; put: number of the offer's operation
  std::uint64_t size = 0;
  std::string sender;
  bool has_arrived = false;
  bool has_ended_well = false;
};

/// What all applications of a swarm share.
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
  /// Does one thing, whatever comes to mind; `peers`: everybody's addresses, by number.
  void act(const std::vector<std::string>& peers);
  /// Some time after the last act.
  void check_deadlines();
  /// Ends everything; what is queued is cancelled.
  void begin_end();
  bool has_ended() const { return machine_->state() == net::MachineState::stopped; }
  /// After the end.
  void check_books();

 private:
  struct Slot {
    std::unique_ptr<net::Buffer> buffer;
    bool is_open = false;  // an operation of ours is under way
    net::QueueKind kind = net::QueueKind::message_receive;
    std::uint64_t operation = 0;
    std::uint64_t length = 0;       // of what it sends, or may receive
    std::uint64_t other = 0;        // active: the offer's operation
    std::uint64_t end_of_last = 0;  // message_receive: no later message begins before
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
