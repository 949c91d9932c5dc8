#pragma once
// A Core without an engine. It records each submitted operation; the test decides how and in which order operations
// end. What the fake does by itself, it does as an engine: both pass core_contract_test.cpp.

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "engine/core.hpp"
#include "net/domain_state.hpp"

namespace fairlead::net {

class FakeCore final : public engine::Core {
 public:
  struct Submitted {
    std::uint32_t port = 0;  // its slot
    char kind = 0;           // r receive, s send, e expose, p put, g get
    std::uint64_t cookie = 0;
    std::uint64_t length = 0;
    engine::RemotePort target{};
    std::uint64_t key = 0;
    bool is_cancelled = false;
    // Receives: size of the buffer, bytes used of it, and how many messages it may still take.
    std::uint64_t size = 0, used = 0;
    std::uint32_t messages_left = 0;
  };

  explicit FakeCore(const base::SocketAddress& address) : address_(address) {}

  // Controls for the test.

  /// Ends the oldest operation that has no final event yet. With is_final false, delivers one message to it instead.
  void complete(Status status, std::uint64_t length = 0, std::uint64_t offset = 0, bool is_final = true,
                engine::RemotePort source = {}) {
    const std::scoped_lock lock(mutex_);
    ASSERT_FALSE(submitted_.empty());
    const std::uint32_t slot = submitted_.begin()->first;
    finish(slot, status, length, offset, is_final, source);
  }
  /// Ends the operation that was submitted `index` places after the oldest one.
  void complete_nth(std::size_t index, Status status) {
    const std::scoped_lock lock(mutex_);
    ASSERT_LT(index, submitted_.size());
    finish(std::next(submitted_.begin(), static_cast<std::ptrdiff_t>(index))->first, status, 0, 0, true, {});
  }
  /// Delivers a message as an engine does: to the first buffer with room, else to a spare, else it is dropped.
  void arrive(std::uint64_t length, engine::RemotePort source = {}) {
    const std::scoped_lock lock(mutex_);
    if (place(length, source)) return;
    if (post_spare() && place(length, source)) return;
    count_drop();
  }
  /// From now on a cancelled operation ends only by complete().
  void hold_cancels() { holds_cancels_ = true; }
  void fail_next(Status status) { next_failure_ = status; }
  void throw_at_open() { throws_at_open_ = true; }
  /// Sleeps while a port closes, so that other threads can interleave.
  void nap_at_close() { naps_at_close_ = true; }
  /// Behaves like a host engine that has ended.
  void end() {
    has_ended_ = true;
    const std::scoped_lock lock(mutex_);
    for (const auto& [number, dropped_before] : ports_) interrupted_.insert(number);
    changed_.notify_all();
  }
  void drop_message() {
    const std::scoped_lock lock(mutex_);
    count_drop();
  }
  std::vector<Submitted> submitted() const {
    const std::scoped_lock lock(mutex_);
    std::vector<Submitted> all;
    all.reserve(submitted_.size());
    for (const auto& [slot, operation] : submitted_) all.push_back(operation);
    return all;
  }
  std::uint32_t reserved() const { return reserved_; }
  std::size_t ports_open() const {
    const std::scoped_lock lock(mutex_);
    return ports_.size();
  }
  std::uint64_t waits() const { return waits_; }

  // Core's interface.

  base::SocketAddress address() const override { return address_; }
  std::uint64_t epoch() const override { return 77; }
  bool has_ended() const override { return has_ended_; }
  std::uint64_t message_size_max() const override { return 1U << 20; }

  Result<engine::PortHandle> open_port(std::uint32_t number) override {
    if (throws_at_open_) throw std::bad_alloc();
    const std::scoped_lock lock(mutex_);
    if (ports_.contains(number)) return std::unexpected(Error{Status::in_use, 0, "taken"});
    return open(number);
  }
  Result<engine::PortHandle> open_port_dynamic(std::uint32_t first, std::uint32_t count,
                                               std::uint32_t& number) override {
    const std::scoped_lock lock(mutex_);
    for (number = first + count - 1; number >= first; --number) {
      if (!ports_.contains(number)) return open(number);
    }
    return std::unexpected(Error{Status::not_available, 0, "none free"});
  }
  void close_port(engine::PortHandle port) override {
    if (naps_at_close_) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const std::scoped_lock lock(mutex_);
    ports_.erase(port.slot);
    std::erase_if(submitted_, [&](const auto& operation) { return operation.second.port == port.slot; });
    std::erase_if(spares_, [&](std::uint32_t slot) { return !submitted_.contains(slot); });
    events_.erase(port.slot);
    interrupted_.erase(port.slot);
    watching_drops_.erase(port.slot);
  }

  Status reserve_events(engine::PortHandle, std::uint32_t count) override {
    if (next_failure_ == Status::no_memory) return next_failure_.exchange(Status::ok);
    if (count > kEventsMax - reserved_) return Status::no_memory;
    reserved_ += count;
    return Status::ok;
  }
  void release_events(engine::PortHandle, std::uint32_t count) override {
    ASSERT_LE(count, reserved_);
    reserved_ -= count;
  }

  Status post_receive(engine::PortHandle port, const engine::Receive& receive,
                      engine::OperationHandle& operation) override {
    std::uint64_t size = 0;
    for (const iovec& piece : receive.memory) size += piece.iov_len;
    return submit(port,
                  {.kind = 'r',
                   .cookie = receive.cookie,
                   .length = receive.size_min,
                   .size = size,
                   .messages_left = receive.messages_max},
                  operation);
  }
  void set_spares(engine::PortHandle port, const engine::SparePlan& plan) override {
    const std::scoped_lock lock(mutex_);
    plan_ = plan;
    plan_port_ = port.slot;
    fill_up();
    if (plan.spares) return;
    for (const std::uint32_t slot : std::set(spares_)) finish(slot, Status::canceled, 0, 0, true, {});
  }
  void grant_spares(engine::PortHandle, std::uint32_t count) override { granted_ += count; }
  engine::SpareCounts spare_counts(engine::PortHandle) const override {
    const std::scoped_lock lock(mutex_);
    const auto posted = static_cast<std::uint32_t>(spares_.size());
    return {posted, plan_.spares && plan_.length > posted ? plan_.length - posted : 0, posted};
  }
  Status send(engine::PortHandle port, const engine::Send& send, engine::OperationHandle& operation) override {
    if (send.part.length > message_size_max()) return Status::message_size;
    return submit(port, {.kind = 's', .cookie = send.part.cookie, .length = send.part.length, .target = send.to},
                  operation);
  }
  std::size_t send_all(engine::PortHandle port, const engine::RemotePort& to, std::span<const link::SendPart> parts,
                       std::span<engine::OperationHandle> operations, Status& status) override {
    std::size_t sent = 0;
    for (status = Status::ok; sent < parts.size(); ++sent) {
      status = send(port, {.to = to, .part = {{}, parts[sent].length, parts[sent].cookie}}, operations[sent]);
      if (status != Status::ok) break;
    }
    return sent;
  }
  Status expose(engine::PortHandle port, const engine::Exposure& exposure, engine::OperationHandle& operation,
                std::uint64_t& key) override {
    key = next_key_++;
    return submit(port, {.kind = 'e', .cookie = exposure.cookie, .length = exposure.length, .key = key}, operation);
  }
  Status put(engine::PortHandle port, const engine::Transfer& transfer, engine::OperationHandle& operation) override {
    return submit(port,
                  {.kind = 'p',
                   .cookie = transfer.cookie,
                   .length = transfer.length,
                   .target = transfer.target,
                   .key = transfer.key},
                  operation);
  }
  Status get(engine::PortHandle port, const engine::Transfer& transfer, engine::OperationHandle& operation) override {
    return submit(port,
                  {.kind = 'g',
                   .cookie = transfer.cookie,
                   .length = transfer.length,
                   .target = transfer.target,
                   .key = transfer.key},
                  operation);
  }

  bool cancel(engine::PortHandle, engine::OperationHandle operation) override {
    const std::scoped_lock lock(mutex_);
    const auto found = submitted_.find(operation.slot);
    if (found == submitted_.end()) return false;
    found->second.is_cancelled = true;
    if (!holds_cancels_) finish(operation.slot, Status::canceled, 0, 0, true, {});
    return true;
  }

  bool progress() override { return false; }
  std::size_t next_events(engine::PortHandle port, std::span<engine::Completion> to) override {
    const std::scoped_lock lock(mutex_);
    auto& events = events_[port.slot];
    const std::size_t count = std::min(to.size(), events.size());
    std::copy_n(events.begin(), count, to.begin());
    events.erase(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(count));
    return count;
  }
  bool has_event(engine::PortHandle port) const override {
    const std::scoped_lock lock(mutex_);
    return has_event_at(port.slot);
  }
  bool wait(engine::PortHandle port, base::Instant deadline) override {
    std::unique_lock lock(mutex_);
    ++waits_;
    const auto is_over = [&] { return has_event_at(port.slot) || interrupted_.contains(port.slot); };
    const auto until = std::chrono::steady_clock::time_point(deadline.time_since_epoch());
    if (deadline == base::kNever) {
      changed_.wait(lock, is_over);
    } else {
      changed_.wait_until(lock, until, is_over);
    }
    interrupted_.erase(port.slot);
    return has_event_at(port.slot);
  }
  void interrupt(engine::PortHandle port) override {
    const std::scoped_lock lock(mutex_);
    interrupted_.insert(port.slot);
    changed_.notify_all();
  }
  int descriptor(engine::PortHandle) const override { return -1; }
  bool arm_descriptor(engine::PortHandle) override { return false; }
  void watch_drops(engine::PortHandle port) override {
    const std::scoped_lock lock(mutex_);
    watching_drops_.insert(port.slot);
  }
  std::uint64_t dropped_no_buffer(engine::PortHandle port) const override {
    const std::scoped_lock lock(mutex_);
    return dropped_ - ports_.at(port.slot);
  }
  observe::EngineFacts facts() const override {
    return {.path = "fake", .counters = {{"fake.submissions", next_slot_}}, .peers = {}};
  }
  std::string describe_flight(const base::SocketAddress& peer) const override { return "met " + peer.to_string(); }
  transport::PeerFacts peer_facts(const base::SocketAddress&) const override { return facts_of_peers; }
  std::string describe_failure(const base::SocketAddress& peer, Status status) const override {
    return status == Status::refused ? std::string() : "never met " + peer.to_string();  // it is there, and refused it
  }

  transport::PeerFacts facts_of_peers;

 private:
  static constexpr std::uint32_t kEventsMax = 1U << 20;

  engine::PortHandle open(std::uint32_t number) {
    ports_.emplace(number, dropped_);
    return {number, 1};
  }
  bool has_event_at(std::uint32_t port) const {
    const auto found = events_.find(port);
    return found != events_.end() && !found->second.empty();
  }
  void fill_up() {
    while (spares_.size() < plan_.length && post_spare()) continue;
  }
  bool post_spare() {
    if (!plan_.spares || granted_ == 0) return false;
    engine::Spare* const spare = plan_.spares->take(plan_.colour);
    if (spare == nullptr) {
      plan_.spares->want();
      return false;
    }
    --granted_;
    spare->operation = {next_slot_++, 1};
    spares_.insert(spare->operation.slot);
    submitted_.emplace(spare->operation.slot, Submitted{.port = plan_port_,
                                                        .kind = 'r',
                                                        .cookie = spare->cookie,
                                                        .length = plan_.size_min,
                                                        .size = plan_.spares->size(),
                                                        .messages_left = plan_.messages_max});
    return true;
  }
  // Returns false if no buffer has room.
  bool place(std::uint64_t length, const engine::RemotePort& source) {
    for (auto& [slot, receive] : submitted_) {
      if (receive.kind != 'r' || receive.size - receive.used < length) continue;
      const std::uint64_t offset = receive.used;
      receive.used += length;
      --receive.messages_left;
      const bool is_final = receive.messages_left == 0 || receive.size - receive.used < receive.length;
      finish(slot, Status::ok, length, offset, is_final, source);
      return true;
    }
    return false;
  }
  void count_drop() {
    ++dropped_;
    interrupted_.merge(std::exchange(watching_drops_, {}));
    changed_.notify_all();
  }
  Status submit(engine::PortHandle port, Submitted operation, engine::OperationHandle& handle) {
    if (next_failure_ != Status::ok) return next_failure_.exchange(Status::ok);
    const std::scoped_lock lock(mutex_);
    operation.port = port.slot;
    handle = {next_slot_++, 1};
    submitted_.emplace(handle.slot, operation);
    return Status::ok;
  }
  void finish(std::uint32_t slot, Status status, std::uint64_t length, std::uint64_t offset, bool is_final,
              const engine::RemotePort& source) {
    const Submitted& operation = submitted_.at(slot);
    events_[operation.port].push_back({.cookie = operation.cookie,
                                       .length = length,
                                       .offset = offset,
                                       .time_ns = base::MonotonicClock::now().time_since_epoch().count(),
                                       .source = source,
                                       .status = status,
                                       .is_final = is_final});
    if (is_final) submitted_.erase(slot);
    if (is_final && spares_.erase(slot) > 0) fill_up();
    changed_.notify_all();
  }

  const base::SocketAddress address_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint32_t, std::uint64_t> ports_;  // what was dropped before each was opened, by number
  std::map<std::uint32_t, Submitted> submitted_;  // by slot, in the order of submission
  std::map<std::uint32_t, std::deque<engine::Completion>> events_;  // by port
  std::set<std::uint32_t> interrupted_, watching_drops_;
  engine::SparePlan plan_;
  std::uint32_t plan_port_ = 0;
  std::set<std::uint32_t> spares_;  // slots
  std::atomic<std::uint32_t> granted_ = 0;
  std::uint32_t next_slot_ = 0;
  std::atomic<std::uint64_t> next_key_ = 1000;
  std::atomic<std::uint32_t> reserved_ = 0;
  std::uint64_t dropped_ = 0;
  std::atomic<std::uint64_t> waits_ = 0;
  std::atomic<bool> has_ended_ = false;
  std::atomic<bool> holds_cancels_ = false;
  std::atomic<bool> naps_at_close_ = false, throws_at_open_ = false;
  std::atomic<Status> next_failure_ = Status::ok;
};

/// A domain whose machines all share one FakeCore.
struct FakeDomain {
  std::shared_ptr<FakeCore> core = std::make_shared<FakeCore>(base::SocketAddress::from_ip("127.0.0.1", 20480).value());
  std::shared_ptr<DomainState> state = std::make_shared<DomainState>();
  Domain domain = DomainState::handle(state);

  FakeDomain() {
    state->attach = [this](const base::SocketAddress&, const engine::EngineOptions&) {
      return Result<std::shared_ptr<engine::Core>>(core);
    };
  }
};

}  // namespace fairlead::net
