#include "embedded/embedded_core.hpp"

#include <chrono>
#include <thread>
#include <utility>

#include "engine/handover.hpp"

namespace fairlead::embedded {

EmbeddedCore::EmbeddedCore(std::unique_ptr<engine::Engine> engine, base::FileDescriptor kick, base::LogFile log,
                           const std::optional<seal::KeyringFiles>& keys)
    : driver_(std::move(engine), std::move(kick), std::move(log), keys) {}

EmbeddedCore::~EmbeddedCore() {
  driver_.stop();
}

Result<engine::PortHandle> EmbeddedCore::open_port(std::uint32_t number) {
  const Driver::Locked lock(driver_);
  return driver_.engine().ports().open(number);
}

Result<engine::PortHandle> EmbeddedCore::open_port_dynamic(std::uint32_t first, std::uint32_t count,
                                                           std::uint32_t& number) {
  const Driver::Locked lock(driver_);
  return driver_.engine().ports().open_dynamic(first, count, number);
}

void EmbeddedCore::close_port(engine::PortHandle handle) {
  {
    const Driver::Locked lock(driver_);
    if (driver_.engine().ports().find(handle) == nullptr) return;
    driver_.engine().cancel_all(handle, base::MonotonicClock::now());
  }
  // Operations in flight still refer to their memory. They end by acknowledgement, or when the peer is given up.
  for (;;) {
    {
      const Driver::Locked lock(driver_);
      if (driver_.port(handle).operations == 0) {
        driver_.engine().free_port(handle);
        return;
      }
    }
    if (!driver_.pass(base::MonotonicClock::now())) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

// The consumer's side ------------------------------------------------------------------------------------------------

Status EmbeddedCore::reserve_events(engine::PortHandle handle, std::uint32_t count) {
  engine::Port& port = driver_.port(handle);
  const std::uint64_t needed = std::uint64_t{port.events_reserved} + count;
  if (needed > driver_.engine().options().get(engine::Option::events_max)) return Status::no_memory;
  const Status status = port.events->reserve(needed);
  if (status == Status::ok) port.events_reserved += count;
  return status;
}

void EmbeddedCore::release_events(engine::PortHandle handle, std::uint32_t count) {
  engine::Port& port = driver_.port(handle);
  ENSURE(port.events_reserved >= count, "port {}: {} events released of {}", port.number, count, port.events_reserved);
  port.events_reserved -= count;
}

std::size_t EmbeddedCore::next_events(engine::PortHandle handle, std::span<engine::Completion> to) {
  return driver_.port(handle).events->consume(to);
}

bool EmbeddedCore::has_event(engine::PortHandle handle) const {
  return !driver_.port(handle).events->is_empty();
}

// Submissions --------------------------------------------------------------------------------------------------------

Status EmbeddedCore::post_receive(engine::PortHandle port, const engine::Receive& receive,
                                  engine::OperationHandle& operation) {
  const Driver::Locked lock(driver_);
  return driver_.engine().messages().post_receive(port, receive, operation);
}

void EmbeddedCore::set_spares(engine::PortHandle port, const engine::SparePlan& plan) {
  driver_.submit([&](base::Instant now) {
    driver_.engine().set_spares(port, plan, now);
    return Status::ok;
  });
}

void EmbeddedCore::grant_spares(engine::PortHandle handle, std::uint32_t count) {
  driver_.port(handle).spares_granted.fetch_add(count, std::memory_order_release);
}

engine::SpareCounts EmbeddedCore::spare_counts(engine::PortHandle port) const {
  const Driver::Locked lock(driver_);
  return driver_.engine().messages().spare_counts(port);
}

Status EmbeddedCore::expose(engine::PortHandle port, const engine::Exposure& exposure,
                            engine::OperationHandle& operation, std::uint64_t& key) {
  const Driver::Locked lock(driver_);
  return driver_.engine().messages().expose(port, exposure, operation, key);
}

Status EmbeddedCore::send(engine::PortHandle port, const engine::Send& send, engine::OperationHandle& operation) {
  if (send.part.length > kMessageSizeMax) return Status::message_size;
  return driver_.submit_locked([&] {
    const bool is_plain = !send.is_loan && !send.is_confirmed;
    if (is_plain && send_short(port, send.to, {&send.part, 1}, {&operation, 1}, send.now) == 1) return Status::ok;
    return driver_.engine().messages().send(port, send, operation, driver_.time_of_call(send.now));
  });
}

std::size_t EmbeddedCore::send_all(engine::PortHandle port, const engine::RemotePort& to,
                                   std::span<const link::SendPart> parts, std::span<engine::OperationHandle> operations,
                                   Status& status) {
  std::size_t sent = 0;
  status = driver_.submit_locked([&] {
    sent = send_short(port, to, parts, operations, {});
    if (sent == parts.size()) return Status::ok;
    const base::Instant now = driver_.time_of_call();
    for (; sent < parts.size(); ++sent) {
      const link::SendPart& part = parts[sent];
      if (part.length > kMessageSizeMax) return Status::message_size;
      const engine::Send send{.to = to, .part = part};
      if (const Status refused = driver_.engine().messages().send(port, send, operations[sent], now);
          refused != Status::ok)
        return refused;
    }
    return Status::ok;
  });
  return sent;
}

/// Under the lock. Returns how many messages the transport of a known peer has taken; the others need
/// messages().send(). `known`: a time that was just read.
std::size_t EmbeddedCore::send_short(engine::PortHandle port, const engine::RemotePort& to,
                                     std::span<const link::SendPart> parts,
                                     std::span<engine::OperationHandle> operations, base::Instant known) {
  const link::PeerHandle* const peer = driver_.engine().find_peer(to.engine);
  if (peer == nullptr) return 0;
  const bool is_local = shm::Transport::has(*peer);
  const base::Instant now = is_local ? driver_.time_of_local_call() : driver_.time_of_call(known);
  return driver_.engine().messages().send_short(port, *peer, to.port, parts, operations, now);
}

Status EmbeddedCore::put(engine::PortHandle port, const engine::Transfer& transfer,
                         engine::OperationHandle& operation) {
  return driver_.submit_local([&] { return driver_.is_local(transfer.target); },
                              [&](base::Instant now) {
                                return driver_.engine().messages().transfer(port, engine::OperationKind::put, transfer,
                                                                            operation, now);
                              });
}

Status EmbeddedCore::get(engine::PortHandle port, const engine::Transfer& transfer,
                         engine::OperationHandle& operation) {
  return driver_.submit_local([&] { return driver_.is_local(transfer.target); },
                              [&](base::Instant now) {
                                return driver_.engine().messages().transfer(port, engine::OperationKind::get, transfer,
                                                                            operation, now);
                              });
}

engine::Core::AllocateShared EmbeddedCore::allocate_shared() {
  shm::Connections* connections = driver_.engine().connections();
  if (connections == nullptr || connections->published() == nullptr) return {};
  return [weak = std::weak_ptr(connections->published()),
          mark = driver_.mark()](std::uint64_t bytes) -> std::shared_ptr<std::byte> {
    auto published = mark.is_inherited() ? nullptr : weak.lock();
    const std::span memory = published ? published->remapped.allocate(bytes) : std::span<std::byte>();
    if (memory.empty()) return nullptr;
    return {memory.data(), [published, memory, mark](std::byte*) mutable {
              // In the child of a fork(), free() would also empty the parent's pages.
              mark.is_inherited() ? base::keep_for_ever(std::move(published)) : published->remapped.free(memory);
            }};
  };
}

void EmbeddedCore::give_back(engine::PortHandle port, std::uint64_t name) {
  driver_.submit_local([&] { return driver_.engine().is_network_idle(); },
                       [&](base::Instant now) {
                         driver_.engine().messages().give_back(port, name, now);
                         return Status::ok;
                       });
}

bool EmbeddedCore::cancel(engine::PortHandle port, engine::OperationHandle operation) {
  bool is_pending = false;
  driver_.submit([&](base::Instant now) {
    is_pending = driver_.engine().cancel(port, operation, now);
    return Status::ok;
  });
  return is_pending;
}

// Waiting ------------------------------------------------------------------------------------------------------------

std::size_t EmbeddedCore::poll(engine::PortHandle handle, std::span<engine::Completion> to) {
  engine::Port& port = driver_.port(handle);
  if (driver_.engine().path() == nullptr) return port.events->consume(to);
  std::size_t count = 0;
  bool has_passed = false;
  driver_.look_by([&](base::Instant now) {
    bool any = false;
    count = driver_.engine().progress_into(port, to, now, any);
    has_passed = true;
    return any;
  });
  return has_passed ? count : port.events->consume(to);
}

bool EmbeddedCore::wait(engine::PortHandle handle, base::Instant deadline) {
  engine::Port* port = &driver_.port(handle);
  return driver_.wait(std::span(&port, 1), deadline);
}

void EmbeddedCore::interrupt(engine::PortHandle handle) {
  engine::Port& port = driver_.port(handle);
  port.is_interrupted.store(true, std::memory_order_release);
  port.waiter->notify();
}

int EmbeddedCore::descriptor(engine::PortHandle handle) const {
  return driver_.port(handle).waiter->descriptor();
}

bool EmbeddedCore::arm_descriptor(engine::PortHandle handle) {
  engine::Port& port = driver_.port(handle);
  port.waiter->disarm();  // from the previous call
  return port.waiter->arm([&] { return port.has_news(); });
}

// The next program in this process -----------------------------------------------------------------------------------

void EmbeddedCore::part_from_local_peers(bool is_parting) {
  driver_.submit([&](base::Instant now) {
    engine::Handover(driver_.engine()).part_from_local_peers(is_parting, now);
    return Status::ok;
  });
}

bool EmbeddedCore::has_parted(std::string& why) const {
  const Driver::Locked lock(driver_);
  return engine::Handover(driver_.engine()).has_parted(why);
}

void EmbeddedCore::meet_again(const engine::EngineState& state) {
  driver_.submit([&](base::Instant now) {
    engine::Handover(driver_.engine()).meet_again(state, now);
    return Status::ok;
  });
}

void EmbeddedCore::hold_answers(bool is_held) {
  const Driver::Locked lock(driver_);
  engine::Handover(driver_.engine()).hold_answers(is_held);
}

bool EmbeddedCore::is_still() const {
  const Driver::Locked lock(driver_);
  return engine::Handover(driver_.engine()).is_still();
}

Result<> EmbeddedCore::restore(const engine::EngineState& state) {
  const Driver::Locked lock(driver_);
  return engine::Handover(driver_.engine()).restore(state, driver_.time_of_call());
}

bool EmbeddedCore::has_port(engine::PortHandle port) const {
  const Driver::Locked lock(driver_);
  return driver_.engine().ports().find(port) != nullptr;
}

bool EmbeddedCore::give_memory(engine::PortHandle port, engine::OperationHandle operation, std::uint64_t cookie,
                               std::span<const iovec> memory) {
  const Driver::Locked lock(driver_);
  return engine::Handover(driver_.engine()).give_memory(port, operation, cookie, memory);
}

Result<> EmbeddedCore::finish(const engine::EngineState& state) {
  const Driver::Locked lock(driver_);
  return engine::Handover(driver_.engine()).finish(state);
}

// Facts --------------------------------------------------------------------------------------------------------------

// The caller reads the count after this store. The engine changes the count before it reads this flag. All four are
// sequentially consistent, so at least one side sees the other's change.
void EmbeddedCore::watch_drops(engine::PortHandle handle) {
  driver_.port(handle).watches_drops.store(true);
}

std::uint64_t EmbeddedCore::dropped_no_buffer(engine::PortHandle handle) const {
  return driver_.port(handle).dropped_no_buffer.load();
}

observe::EngineFacts EmbeddedCore::facts() const {
  const Driver::Locked lock(driver_);
  return driver_.engine().facts();
}

std::string EmbeddedCore::describe_failure(const base::SocketAddress& address, Status status) const {
  const Driver::Locked lock(driver_);
  return driver_.engine().describe_peer(address, base::MonotonicClock::now(), status);
}

transport::PeerFacts EmbeddedCore::peer_facts(const base::SocketAddress& address) const {
  const Driver::Locked lock(driver_);
  return driver_.engine().peer_facts(address);
}

std::string EmbeddedCore::describe_flight(const base::SocketAddress& address) const {
  const Driver::Locked lock(driver_);
  return driver_.engine().describe_flight(address, base::MonotonicClock::now());
}

}  // namespace fairlead::embedded
