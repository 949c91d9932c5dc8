#pragma once
// The engine interface to the host engine: a process that owns the network and serves the applications of its host
// (docs/host.md). Operations go through a ring in shared memory, and return as events. Neither side makes system calls
// for them, except to wake a sleeper.
//
// Receives reach the engine before the call returns, so a message sent afterwards finds them. Exposures have keys that
// the engine gave in advance. A put or get that arrives before its exposure is repeated (engine/exposures.hpp).
//
// Memory: the host engine accesses memory that lies in the shared memory, such as net buffers allocated after their
// machine started. Other memory is copied, at submission or when the event is taken.
//
// End: when the host engine ends, every pending operation and each later call ends with `restarted`. A new attachment
// reaches its successor.

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "base/process_mark.hpp"
#include "base/short_lock.hpp"
#include "engine/core.hpp"
#include "host/call.hpp"
#include "host/client_operations.hpp"
#include "host/client_port.hpp"
#include "host/host_connection.hpp"
#include "host/host_pairs.hpp"
#include "host/one_segment.hpp"
#include "queue/idle_polls.hpp"
#include "queue/producer.hpp"

namespace fairlead::host {

/// Counters of this application.
struct ClientCounters {
  std::atomic<std::uint64_t> requests{0}, copied_bytes{0};
};

class HostActive;

class HostCore final : public engine::Core {
 public:
  /// Attaches to the host engine at `file`, for its engine at `local`. Returns `refused` if nobody listens there.
  static Result<std::shared_ptr<HostCore>> attach(const std::string& file, const base::SocketAddress& local,
                                                  const engine::EngineOptions& options);
  ~HostCore() override;

  /// Returns whether the host engine is known to have ended. look_for_end() asks the kernel.
  bool has_ended() const noexcept override { return host_.has_ended(); }
  bool look_for_end() { return host_.look_for_end(); }

  base::SocketAddress address() const override { return address_; }
  std::uint64_t epoch() const override { return epoch_; }
  std::uint64_t message_size_max() const override { return message_size_max_; }
  Result<engine::PortHandle> open_port(std::uint32_t number) override { return open(number, 0, number); }
  Result<engine::PortHandle> open_port_dynamic(std::uint32_t first, std::uint32_t count,
                                               std::uint32_t& number) override {
    return open(first, count, number);
  }
  void close_port(engine::PortHandle port) override;
  Status reserve_events(engine::PortHandle port, std::uint32_t count) override { return find(port).reserve(count); }
  void release_events(engine::PortHandle port, std::uint32_t count) override { find(port).release(count); }
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
  bool progress() override;
  void give_way() override;
  std::size_t next_events(engine::PortHandle port, std::span<engine::Completion> to) override;
  bool has_event(engine::PortHandle port) const override;
  bool wait(engine::PortHandle port, base::Instant deadline) override;
  void interrupt(engine::PortHandle port) override { find(port).interrupt(); }
  int descriptor(engine::PortHandle port) const override { return find(port).socket().descriptor(); }
  bool arm_descriptor(engine::PortHandle port) override;
  AllocateShared allocate_shared() override;
  /// Asks the host engine once for what queue pairs need. Before that, pairs() is null.
  Result<> open_pairs();
  qp::PairCore* pairs() override { return pairs_.get(); }
  engine::ActivePorts* active_ports() override;
  /// Only active ports leave: the engine belongs to others, too.
  void take_leave() override;
  void watch_losses(engine::PortHandle port) override { find(port).watch_losses(); }
  void watch_drops(engine::PortHandle port) override { find(port).watch_drops(); }
  std::uint64_t dropped_no_buffer(engine::PortHandle port) const override { return find(port).dropped(); }
  observe::EngineFacts facts() const override;
  std::string describe_failure(const base::SocketAddress& address, Status status) const override;
  transport::PeerFacts peer_facts(const base::SocketAddress& address) const override;
  std::string describe_flight(const base::SocketAddress& address) const override;

 private:
  friend class HostActive;

  /// The parameters of an operation.
  struct Submission {
    engine::PortHandle port;
    std::span<const iovec> memory;
    std::uint64_t length = 0;
    std::uint64_t cookie = 0;
    bool gives_bytes = false, takes_bytes = false, is_spare = false, may_be_empty = false;
  };

  HostCore(std::shared_ptr<ClientMemory> memory, const engine::EngineOptions& options);
  ClientPort& find(engine::PortHandle port) const;
  Result<engine::PortHandle> open(std::uint32_t first, std::uint32_t count, std::uint32_t& number);
  Status submit(const Submission& submission, Request request, engine::OperationHandle& operation,
                std::uint64_t* number = nullptr, std::uint64_t* key = nullptr);
  Status transfer(engine::PortHandle port, Request::Kind kind, const engine::Transfer& transfer,
                  engine::OperationHandle& operation);
  Status push(const Request& request);
  // host_core_calls.cpp
  std::uint64_t push_surely(engine::PortHandle port, Request request);
  Status ask_and_wait(engine::PortHandle port, const Request& request, std::uint64_t* key = nullptr);
  bool wait_any(std::span<const engine::PortHandle> ports, base::Instant deadline);
  bool wait_until_all_are_served();
  Status wait_for_reply(std::uint64_t number, std::uint64_t& key);
  bool take_event(engine::PortHandle port, const Event& event, engine::Completion& completion);
  void end(ClientOperation& operation);
  std::size_t end_all(engine::PortHandle port, std::span<engine::Completion> to);
  std::optional<std::uint64_t> fill_up(engine::PortHandle port);
  void cancel_spares(engine::PortHandle port, std::uint32_t count);
  Status post(engine::PortHandle port, const engine::Receive& receive, bool is_spare,
              engine::OperationHandle& operation, std::uint64_t& number);
  Result<Answered> call(const Call& call) const;

  HostConnection host_;
  std::string file_;
  base::SocketAddress address_;
  std::uint64_t epoch_ = 0, message_size_max_ = 0, secret_ = 0;
  ClientCounters counters_;

  mutable std::mutex call_mutex_;  // admits one call on the socket, and one answer in the reply cell
  mutable base::ShortLock mutex_;  // guards the members below
  std::optional<OneSegment> request_memory_;
  std::optional<queue::Producer> requests_;
  mutable ClientOperations operations_;
  EventRoom event_room_{kEventsOfAllMax};
  std::array<std::unique_ptr<ClientPort>, kPortsMax> ports_;
  std::uint32_t ports_opened_ = 0;
  queue::IdlePolls idle_polls_;
  queue::WaitChoice wait_choice_;
  std::unique_ptr<HostPairs> pairs_;
  std::unique_ptr<HostActive> active_;
  const base::ProcessMark mark_;
};

}  // namespace fairlead::host
