#include "embedded/embedded_core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "base/ensure.hpp"
#include "base/process_memory.hpp"
#include "base/slow_closer.hpp"

namespace fairlead::embedded {
namespace {

struct Everyone {
  std::mutex mutex;
  std::vector<EmbeddedCore*> cores;
};

Everyone& everyone() {
  static constinit base::OfProcess<Everyone> the_cores;
  return *the_cores;
}

}  // namespace

EmbeddedCore::EmbeddedCore(std::unique_ptr<engine::Engine> engine, base::FileDescriptor kick, base::LogFile log,
                           const std::optional<seal::KeyringFiles>& keys)
    : engine_(std::move(engine)),
      thread_sleeps_until_(kSomebodyDrives),
      ladder_(engine_->options().wait(), std::chrono::microseconds(engine_->options().get(engine::Option::spin))),
      kick_(std::move(kick)),
      log_(std::move(log)),
      keyring_watch_(keys ? std::optional<KeyringWatch>(*keys) : std::nullopt) {
  const std::scoped_lock lock(everyone().mutex);
  everyone().cores.push_back(this);
}

Result<> EmbeddedCore::start() {
  if (engine_->path() == nullptr) return {};
  auto thread = base::Thread::start([this] { run(); });
  if (!thread) return std::unexpected(std::move(thread.error()));
  thread_ = std::move(*thread);
  return {};
}

EmbeddedCore::AllLocked::AllLocked() {
  everyone().mutex.lock();
  for (const EmbeddedCore* core : everyone().cores) {
    core->wanted_.fetch_add(1, std::memory_order_relaxed);
    core->mutex_.lock();
    core->wanted_.fetch_sub(1, std::memory_order_relaxed);
  }
}

EmbeddedCore::AllLocked::~AllLocked() {
  for (const EmbeddedCore* core : everyone().cores) core->mutex_.unlock();
  everyone().mutex.unlock();
}

bool EmbeddedCore::AllLocked::is_alone() const {
  const auto threads = static_cast<unsigned>(
      std::ranges::count_if(everyone().cores, [](const EmbeddedCore* core) { return core->thread_.is_joinable(); }));
  return base::thread_count() == threads + base::SlowCloser::threads() + 1;
}

void EmbeddedCore::leave_everyone() {
  const std::scoped_lock lock(everyone().mutex);
  std::erase(everyone().cores, this);
}

Result<engine::PortHandle> EmbeddedCore::open_port(std::uint32_t number) {
  Locked lock(*this);
  return engine_->ports().open(number);
}

Result<engine::PortHandle> EmbeddedCore::open_port_dynamic(std::uint32_t first, std::uint32_t count,
                                                           std::uint32_t& number) {
  Locked lock(*this);
  return engine_->ports().open_dynamic(first, count, number);
}

void EmbeddedCore::close_port(engine::PortHandle handle) {
  {
    Locked lock(*this);
    if (engine_->ports().find(handle) == nullptr) return;
    engine_->cancel_all(handle, base::MonotonicClock::now());
  }
  // What is in flight still refers to its memory: it ends by acknowledgement, or by giving the peer up.
  for (;;) {
    {
      Locked lock(*this);
      if (port_of(handle).operations == 0) {
        engine_->free_port(handle);
        return;
      }
    }
    if (!pass(base::MonotonicClock::now())) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

// The consumer's side ------------------------------------------------------------------------------------------------

Status EmbeddedCore::reserve_events(engine::PortHandle handle, std::uint32_t count) {
  engine::Port& port = port_of(handle);
  const std::uint64_t needed = std::uint64_t{port.events_reserved} + count;
  if (needed > engine_->options().get(engine::Option::events_max)) return Status::no_memory;
  const Status status = port.events->reserve(needed);
  if (status == Status::ok) port.events_reserved += count;
  return status;
}

void EmbeddedCore::release_events(engine::PortHandle handle, std::uint32_t count) {
  engine::Port& port = port_of(handle);
  ENSURE(port.events_reserved >= count, "port {}: {} events released of {}", port.number, count, port.events_reserved);
  port.events_reserved -= count;
}

std::size_t EmbeddedCore::next_events(engine::PortHandle handle, std::span<engine::Completion> to) {
  return port_of(handle).events->consume(to);
}

bool EmbeddedCore::has_event(engine::PortHandle handle) const {
  return !port_of(handle).events->is_empty();
}

// Submissions --------------------------------------------------------------------------------------------------------

Status EmbeddedCore::post_receive(engine::PortHandle port, const engine::Receive& receive,
                                  engine::OperationHandle& operation) {
  Locked lock(*this);
  return engine_->messages().post_receive(port, receive, operation);
}

Status EmbeddedCore::expose(engine::PortHandle port, const engine::Exposure& exposure,
                            engine::OperationHandle& operation, std::uint64_t& key) {
  Locked lock(*this);
  return engine_->messages().expose(port, exposure, operation, key);
}

Status EmbeddedCore::send(engine::PortHandle port, const engine::Send& send, engine::OperationHandle& operation) {
  if (send.part.length > kMessageSizeMax) return Status::message_size;
  return submit_locked([&] {
    if (!send.is_loan && send_short(port, send.to, {&send.part, 1}, {&operation, 1}) == 1) return Status::ok;
    return engine_->messages().send(port, send, operation, time_of_call(send.now));
  });
}

std::size_t EmbeddedCore::send_all(engine::PortHandle port, const engine::RemotePort& to,
                                   std::span<const link::SendPart> parts, std::span<engine::OperationHandle> operations,
                                   Status& status) {
  std::size_t sent = 0;
  status = submit_locked([&] {
    sent = send_short(port, to, parts, operations);
    if (sent == parts.size()) return Status::ok;
    const base::Instant now = time_of_call();
    for (; sent < parts.size(); ++sent) {
      const link::SendPart& part = parts[sent];
      if (part.length > kMessageSizeMax) return Status::message_size;
      const engine::Send send{.to = to, .part = part};
      if (const Status refused = engine_->messages().send(port, send, operations[sent], now); refused != Status::ok)
        return refused;
    }
    return Status::ok;
  });
  return sent;
}

/// Under the lock. How many took the fast path; the others have to go the general way.
std::size_t EmbeddedCore::send_short(engine::PortHandle port, const engine::RemotePort& to,
                                     std::span<const link::SendPart> parts,
                                     std::span<engine::OperationHandle> operations) {
  const link::PeerHandle* const peer = engine_->find_local(to.engine);
  if (peer == nullptr) return 0;
  return engine_->messages().send_short(port, *peer, to.port, parts, operations, time_of_local_call());
}

Status EmbeddedCore::put(engine::PortHandle port, const engine::Transfer& transfer,
                         engine::OperationHandle& operation) {
  return submit_local([&] { return is_local(transfer.target); },
                      [&](base::Instant now) {
                        return engine_->messages().transfer(port, engine::OperationKind::put, transfer, operation, now);
                      });
}

Status EmbeddedCore::get(engine::PortHandle port, const engine::Transfer& transfer,
                         engine::OperationHandle& operation) {
  return submit_local([&] { return is_local(transfer.target); },
                      [&](base::Instant now) {
                        return engine_->messages().transfer(port, engine::OperationKind::get, transfer, operation, now);
                      });
}

engine::Core::AllocateShared EmbeddedCore::allocate_shared() {
  shm::Connections* connections = engine_->connections();
  if (connections == nullptr || connections->shown() == nullptr) return {};
  return [weak = std::weak_ptr(connections->shown()), mark = mark_](std::uint64_t bytes) -> std::shared_ptr<std::byte> {
    auto shown = mark.is_inherited() ? nullptr : weak.lock();
    const std::span memory = shown ? shown->remapped.allocate(bytes) : std::span<std::byte>();
    if (memory.empty()) return nullptr;
    return {memory.data(), [shown, memory, mark](std::byte*) mutable {
              // To free it would empty the parent's pages, too.
              mark.is_inherited() ? base::keep_for_ever(std::move(shown)) : shown->remapped.free(memory);
            }};
  };
}

void EmbeddedCore::give_back(engine::PortHandle port, std::uint64_t name) {
  submit_local([&] { return engine_->is_network_idle(); },
               [&](base::Instant now) {
                 engine_->messages().give_back(port, name, now);
                 return Status::ok;
               });
}

bool EmbeddedCore::cancel(engine::PortHandle port, engine::OperationHandle operation) {
  bool is_pending = false;
  submit([&](base::Instant now) {
    is_pending = engine_->cancel(port, operation, now);
    return Status::ok;
  });
  return is_pending;
}

// Active messages ----------------------------------------------------------------------------------------------------

Status EmbeddedCore::activate(engine::PortHandle port) {
  Locked lock(*this);
  return engine_->activate(port);
}

Status EmbeddedCore::set_access(engine::PortHandle port, const engine::AccessRule& rule) {
  Locked lock(*this);
  active_of(port).rule = rule;
  return Status::ok;
}

Status EmbeddedCore::set_segment(engine::PortHandle port, const engine::Segment& segment) {
  Locked lock(*this);
  active_of(port).segment = segment;
  return Status::ok;
}

void EmbeddedCore::forget_request(engine::PortHandle port, std::uint64_t name) {
  submit([&](base::Instant) {
    engine_->active().forget_request(port, name);
    return Status::ok;
  });
}

Status EmbeddedCore::send_active(engine::PortHandle port, const engine::ActiveMessage& message,
                                 engine::Conversation& conversation) {
  return submit_local([&] { return is_local(message.to); },
                      [&](base::Instant now) { return engine_->send_active(port, message, now, &conversation); });
}

bool EmbeddedCore::next_loss(std::uint64_t& seen, engine::PeerLoss& loss) {
  Locked lock(*this);
  return engine_->active().losses().next(seen, loss);
}

void EmbeddedCore::ask_peer(const base::SocketAddress& peer) {
  submit([&](base::Instant now) {
    engine_->active().ask_peer(peer, now);
    return Status::ok;
  });
}

// Facts --------------------------------------------------------------------------------------------------------------

// This store comes before the caller's look at the count, and there the count before the look at this: one of the two
// sees the other.
void EmbeddedCore::watch_drops(engine::PortHandle handle) {
  port_of(handle).watches_drops.store(true);
}

std::uint64_t EmbeddedCore::dropped_no_buffer(engine::PortHandle handle) const {
  return port_of(handle).dropped_no_buffer.load();
}

observe::EngineFacts EmbeddedCore::facts() const {
  Locked lock(*this);
  return engine_->facts();
}

std::string EmbeddedCore::describe_peer(const base::SocketAddress& address) const {
  Locked lock(*this);
  return engine_->describe_peer(address, base::MonotonicClock::now());
}

std::string EmbeddedCore::describe_flight(const base::SocketAddress& address) const {
  Locked lock(*this);
  return engine_->describe_flight(address, base::MonotonicClock::now());
}

void EmbeddedCore::look_at_keys() {
  std::string complaint;
  if (auto ring = keyring_watch_->next(engine_->now(), complaint)) engine_->set_keyring(std::move(ring));
  if (!complaint.empty()) write_report(complaint + "\n");
}

void EmbeddedCore::write_report(const std::string& report) {
  log_.write(fmt::format("fairlead at {}: {}", engine_->address().to_string(), report));
}

}  // namespace fairlead::embedded
