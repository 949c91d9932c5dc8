#pragma once
// The engine of this process: one Engine behind one lock, with a clock, a thread of its own and waiting.
//
// Who drives. Whoever waits: a poller through progress(), a waiter inside wait(). The engine's own thread sleeps on the
// path's descriptor. When a datagram wakes it and somebody else has made a pass within the last tick, it leaves the
// work to them and only looks again after a tick; when nobody has, it works itself. So beside a poller it costs one
// wake-up a tick, beside nobody one a datagram, and in an idle process none.
//
// The lock is tried, not waited for, where a pass would only be repeated (progress). Those who must have it (submit,
// cancel) announce themselves, and pollers let them pass: a spinning poller would else starve them.

#include <atomic>
#include <memory>
#include <mutex>

#include "base/clock_pace.hpp"
#include "base/ensure.hpp"
#include "base/file_descriptor.hpp"
#include "base/log_file.hpp"
#include "base/process_mark.hpp"
#include "base/short_lock.hpp"
#include "base/thread.hpp"
#include "embedded/embedded_pairs.hpp"
#include "embedded/keyring_watch.hpp"
#include "engine/core.hpp"
#include "engine/engine.hpp"

namespace fairlead::embedded {

class EmbeddedCore final : public engine::Core, public engine::ActivePorts {
 public:
  /// `keys`: the files of what the engine seals with, if it does.
  EmbeddedCore(std::unique_ptr<engine::Engine> engine, base::FileDescriptor kick, base::LogFile log,
               const std::optional<seal::KeyringFiles>& keys);
  ~EmbeddedCore() override;
  /// Its thread, if there is a path. Once.
  Result<> start();

  base::SocketAddress address() const override { return engine_->address(); }
  std::uint64_t epoch() const override { return engine_->epoch(); }
  const engine::EngineOptions* options() const override { return &engine_->options(); }
  std::uint64_t message_size_max() const override { return kMessageSizeMax; }
  Result<engine::PortHandle> open_port(std::uint32_t number) override;
  Result<engine::PortHandle> open_port_dynamic(std::uint32_t first, std::uint32_t count,
                                               std::uint32_t& number) override;
  void close_port(engine::PortHandle port) override;
  Status reserve_events(engine::PortHandle port, std::uint32_t count) override;
  void release_events(engine::PortHandle port, std::uint32_t count) override;
  Status post_receive(engine::PortHandle port, const engine::Receive& receive,
                      engine::OperationHandle& operation) override;
  Status send(engine::PortHandle port, const engine::Send& send, engine::OperationHandle& operation) override;
  std::size_t send_all(engine::PortHandle port, const engine::RemotePort& to, std::span<const link::SendPart> parts,
                       std::span<engine::OperationHandle> operations, Status& status) override;
  Status expose(engine::PortHandle port, const engine::Exposure& exposure, engine::OperationHandle& operation,
                std::uint64_t& key) override;
  Status put(engine::PortHandle port, const engine::Transfer& transfer, engine::OperationHandle& operation) override;
  Status get(engine::PortHandle port, const engine::Transfer& transfer, engine::OperationHandle& operation) override;
  bool cancel(engine::PortHandle port, engine::OperationHandle operation) override;
  bool progress() override;
  std::size_t poll(engine::PortHandle port, std::span<engine::Completion> to) override;
  std::size_t next_events(engine::PortHandle port, std::span<engine::Completion> to) override;
  bool has_event(engine::PortHandle port) const override;
  bool wait(engine::PortHandle port, base::Instant deadline) override;
  void interrupt(engine::PortHandle port) override;
  int descriptor(engine::PortHandle port) const override;
  bool arm_descriptor(engine::PortHandle port) override;
  engine::ActivePorts* active_ports() override { return this; }
  qp::PairCore* flows() override { return &flows_; }
  AllocateShared allocate_shared() override;
  engine::LoanView loan(std::uint64_t name) override { return engine_->messages().loan(name); }
  void give_back(engine::PortHandle port, std::uint64_t name) override;
  void take_leave() override;
  void watch_drops(engine::PortHandle port) override;
  std::uint64_t dropped_no_buffer(engine::PortHandle port) const override;
  observe::EngineFacts facts() const override;
  std::string describe_peer(const base::SocketAddress& address) const override;
  std::string describe_flight(const base::SocketAddress& address) const override;

  Status activate(engine::PortHandle port) override;
  Status set_access(engine::PortHandle port, const engine::AccessRule& rule) override;
  Status set_segment(engine::PortHandle port, const engine::Segment& segment) override;
  std::uint64_t active_copied_max() const override { return engine_->options().get(engine::Option::embedded_max); }
  Status send_active(engine::PortHandle port, const engine::ActiveMessage& message,
                     engine::Conversation& conversation) override;
  void forget_request(engine::PortHandle port, std::uint64_t name) override;
  engine::Arrival* next_arrival(engine::PortHandle port) override { return active_of(port).next(); }
  void release_arrival(engine::PortHandle port, engine::Arrival& arrival) override { active_of(port).release(arrival); }
  bool has_arrival(engine::PortHandle port) const override { return active_of(port).has_ready(); }
  bool wait_any(std::span<const engine::PortHandle> ports, base::Instant deadline) override;
  std::uint64_t losses() const override { return engine_->active().losses().count(); }
  bool next_loss(std::uint64_t& seen, engine::PeerLoss& loss) override;
  void ask_peer(const base::SocketAddress& engine) override;

 private:
  friend class EmbeddedPairs;

  static constexpr std::uint64_t kMessageSizeMax = 1ULL << 40;
  static constexpr std::int64_t kSomebodyDrives = base::Instant::min().time_since_epoch().count();
  static constexpr base::Duration kTickMin = std::chrono::milliseconds(1);
  static constexpr base::Duration kTickMax = std::chrono::milliseconds(4), kTickCalm = std::chrono::milliseconds(8);

  // Holds the engine's lock; pollers that see the wish step back.
  class Locked {
   public:
    explicit Locked(const EmbeddedCore& core) : core_(core) {
      if (core_.mutex_.try_lock()) return;
      core_.wanted_.fetch_add(1, std::memory_order_relaxed);
      core_.mutex_.lock();
      core_.wanted_.fetch_sub(1, std::memory_order_relaxed);
    }
    ~Locked() { core_.mutex_.unlock(); }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

   private:
    const EmbeddedCore& core_;
  };

  // Holds the locks of all engines of this process: no engine touches any memory meanwhile.
  class AllLocked {
   public:
    AllLocked();
    ~AllLocked();
    AllLocked(const AllLocked&) = delete;
    AllLocked& operator=(const AllLocked&) = delete;
    /// Whether the caller is the only thread of the process besides those of engines.
    bool is_alone() const;
  };

  engine::Port& port_of(engine::PortHandle handle) const {
    engine::Port* port = engine_->ports().find(handle);
    ENSURE(port != nullptr, "port slot {} used after it was closed", handle.slot);
    return *port;
  }
  engine::ActivePort& active_of(engine::PortHandle handle) const {
    engine::Port& port = port_of(handle);
    ENSURE(port.active != nullptr, "port {} takes no active messages", port.number);
    return *port.active;
  }
  template <typename Submit>
  Status submit_locked(Submit&& call);
  template <typename Submit>
  Status submit(Submit&& call);
  template <typename IsLocal, typename Submit>
  Status submit_local(IsLocal&& is_local, Submit&& call);
  std::size_t send_short(engine::PortHandle port, const engine::RemotePort& to, std::span<const link::SendPart> parts,
                         std::span<engine::OperationHandle> operations);
  bool is_local(const engine::RemotePort& to) const { return engine_->find_local(to.engine) != nullptr; }
  base::Instant time_of_call(base::Instant known = {});
  base::Instant time_of_local_call();
  base::Instant deadline_to_tell() const;
  bool pass(base::Instant now);
  bool pass(std::unique_lock<base::ShortLock>& lock, base::Instant now);
  bool end_pass(std::unique_lock<base::ShortLock>& lock, bool any);
  bool look();
  template <typename Progress>
  bool look_by(Progress&& progress);
  void leave_everyone();
  void linger();
  void say_goodbye();
  void write_report(const std::string& report);
  void look_at_keys();
  bool wait_for(std::span<engine::Port* const> ports, base::Instant deadline);
  bool spin(std::span<engine::Port* const> ports, queue::WaitLadder::Wait& wait, base::Instant deadline);
  void sleep(std::span<engine::Port* const> ports, base::Instant deadline);
  void run();
  bool rest_if_polled(std::uint64_t& sleeps_seen);
  void kick_if_later_than(base::Instant deadline);
  void rise();

  std::unique_ptr<engine::Engine> engine_;
  mutable base::ShortLock mutex_;
  mutable std::atomic<std::uint32_t> wanted_{0};   // threads that must have the lock
  std::atomic<std::uint64_t> passes_{0};           // made by anybody; the engine's thread compares
  std::atomic<std::int64_t> thread_sleeps_until_;  // when the engine's thread will look at the timers by itself
  std::atomic<std::uint64_t> sleeps_{0};           // of waiters on the path's descriptor
  std::atomic<bool> has_sleeping_driver_{false};   // one waiter sleeps on the path's descriptor, too
  std::atomic<bool> is_thread_asleep_{false};      // until something happens, not for a tick
  std::atomic<bool> is_stopping_{false};
  base::ClockPace pace_;                  // under the lock
  std::atomic<bool> was_in_vain_{false};  // the last look of a poller
  queue::WaitLadder ladder_;              // of all who wait
  base::FileDescriptor kick_;             // wakes the engine's thread: an earlier deadline, or the end
  base::LogFile log_;
  std::optional<KeyringWatch> keyring_watch_;  // if sessions are sealed
  EmbeddedPairs flows_{*this};
  base::Thread thread_;
  const base::ProcessMark mark_;
};

/// `known`: the clock has just been asked.
inline base::Instant EmbeddedCore::time_of_call(base::Instant known) {
  engine_->set_now(known == base::Instant{} ? base::MonotonicClock::now() : known);
  return engine_->now();
}

// For what goes to peers of this host, which no timer needs to know exactly.
inline base::Instant EmbeddedCore::time_of_local_call() {
  return pace_.may_skip() ? engine_->now() : time_of_call();
}

// When the engine's thread has to wake at the latest. While somebody drives it wants to know of no deadline.
inline base::Instant EmbeddedCore::deadline_to_tell() const {
  const bool is_told = thread_sleeps_until_.load(std::memory_order_relaxed) == kSomebodyDrives;
  return is_told ? base::kNever : engine_->next_deadline();
}

/// Under the lock; the engine's thread learns of an earlier deadline.
template <typename Submit>
Status EmbeddedCore::submit_locked(Submit&& call) {
  Status status = Status::ok;
  base::Instant deadline = base::kNever;
  {
    Locked lock(*this);
    status = call();
    engine_->ports().notify_touched();
    deadline = deadline_to_tell();
  }
  kick_if_later_than(deadline);
  return status;
}

template <typename Submit>
Status EmbeddedCore::submit(Submit&& call) {
  return submit_locked([&] { return call(time_of_call()); });
}

/// `is_local`: whether what is submitted goes to a peer of this host.
template <typename IsLocal, typename Submit>
Status EmbeddedCore::submit_local(IsLocal&& is_local, Submit&& call) {
  return submit_locked([&] { return call(is_local() ? time_of_local_call() : time_of_call()); });
}

}  // namespace fairlead::embedded
