// The state of an attached application that outlives the program serving it (service_state.hpp). The application itself
// keeps everything: its connections stay open, and its memory is mapped again.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/saved.hpp"
#include "host/application.hpp"

namespace fairlead::host {
namespace {

constexpr queue::Geometry kRequests{.element_bytes = sizeof(Request), .elements = kRequestsMax + 1};

}  // namespace

Result<ApplicationState> Application::save() {
  if (is_leaving_ || !fault_.empty())
    return std::unexpected(Error{Status::again, 0, fmt::format("{} is about to leave", name())});
  ApplicationState state{.socket = socket_.descriptor(),
                         .memory = file_.get(),
                         .memory_bytes = bytes_,
                         .secret = secret_,
                         .engine = core_->address(),
                         .quota = quota_,
                         .consumed = requests_->consumed(),
                         .served = served_,
                         .started = started_,
                         .attached_at = attached_at_,
                         .pending = {},
                         .ports = {},
                         .pairs = {}};
  if (pairs_ && !pairs_->is_gone()) {
    auto pairs = pairs_->save();
    if (!pairs) {
      pairs.error().message = fmt::format("{}: {}", name(), pairs.error().message);
      return std::unexpected(std::move(pairs.error()));
    }
    state.pairs = std::move(*pairs);
  }
  for (std::uint32_t index = 0; index < operations_.size(); ++index) {
    const Operation& one = operations_[index];
    if (one.phase == Operation::Phase::unused) continue;
    state.pending.push_back(
        {.index = index,
         .name = one.name,
         .serial = one.serial,
         .slot = one.handle.slot,
         .generation = one.handle.generation,
         .offset = static_cast<std::uint64_t>(static_cast<std::byte*>(one.memory.iov_base) - memory_.head()),
         .length = one.memory.iov_len,
         .events = one.events,
         .port = one.port,
         .is_posted = one.phase == Operation::Phase::posted,
         .is_outgoing = one.is_outgoing});
  }
  for (std::uint32_t index = 0; index < ports_end_; ++index) {
    const ApplicationPort* const port = ports_[index].get();
    if (port == nullptr) continue;
    if (port->is_closing || !port->socket().is_open())
      return std::unexpected(Error{Status::again, 0, fmt::format("a port of {} is being closed", name())});
    ApplicationPortState& saved = state.ports.emplace_back(ApplicationPortState{.index = index,
                                                                                .slot = port->handle().slot,
                                                                                .generation = port->handle().generation,
                                                                                .socket = port->socket().descriptor(),
                                                                                .events = port->position(),
                                                                                .deferred = {},
                                                                                .keys = port->keys.save(),
                                                                                .active = {}});
    for (const DeferredRequest& waiting : port->deferred)
      if (is_deferred(waiting)) saved.deferred.push_back({.request = waiting.request, .serial = waiting.serial});
    if (port->active) saved.active = port->active->save(memory_.head());
  }
  return state;
}

Result<std::unique_ptr<Application>> Application::restore(const ApplicationState& state, shm::Socket socket,
                                                          SharedMemory memory, std::shared_ptr<ServedEngine> engine,
                                                          const SocketOf& socket_of) {
  std::unique_ptr<Application> made(
      new Application(std::move(socket), std::move(memory), std::move(engine), state.secret, state.quota));
  const std::span requests(made->memory_.head() + Layout::requests(), Layout::requests_bytes());
  auto consumer = queue::Consumer::resume(requests, kRequests, state.consumed);
  if (!consumer) return std::unexpected(std::move(consumer.error()));
  consumer->look_at_once();
  made->requests_ = std::move(*consumer);
  made->served_ = state.served;
  made->started_ = state.started;
  made->attached_at_ = state.attached_at;
  made->show_losses();
  if (auto restored = made->restore_ports(state, socket_of); !restored) return std::unexpected(restored.error());
  if (auto restored = made->restore_pending(state); !restored) return std::unexpected(restored.error());
  return made;
}

Result<> Application::restore_ports(const ApplicationState& state, const SocketOf& socket_of) {
  for (const ApplicationPortState& saved : state.ports) {
    shm::Socket socket = socket_of(saved.socket);
    if (ports_[saved.index] || !core_->has_port({saved.slot, saved.generation}))
      return base::cannot_restore(
          fmt::format("port {} of {} occurs twice or is unknown to the engine", saved.index, name()));
    const std::span events(memory_.head() + Layout::events(saved.index), Layout::events_bytes());
    auto port = ApplicationPort::resume(*core_, {saved.slot, saved.generation}, events, page().ports[saved.index],
                                        event_room_, saved.events);
    if (!port->has_queue()) blame("it has damaged the queue of its events");
    port->connect(std::move(socket));
    for (const DeferredState& deferred : saved.deferred) port->deferred.push_back({deferred.request, deferred.serial});
    if (saved.active)
      if (auto restored = restore_active(*port, *saved.active); !restored) return restored;
    port->keys.restore(saved.keys);
    for (const BlankState& blank : saved.keys.blanks) {
      if (!core_->own_keys().has(port->handle(), {blank.slot, blank.generation, {}}))
        return base::cannot_restore(fmt::format("a key of {} is unknown to the engine", name()));
      engine_->shares.keep(posted_++);
      ++keys_given_;
    }
    ports_[saved.index] = std::move(port);
    ports_end_ = std::max(ports_end_, saved.index + 1);
    ++ports_open_;
  }
  return {};
}

Result<> Application::restore_active(ApplicationPort& port, const ServedActiveState& state) {
  if (state.memory % 4096 != 0 || !is_inside(state.memory, ActiveLayout::bytes()) ||
      !is_inside(state.segment_offset, state.segment_length))
    return base::cannot_restore(fmt::format("active messages of {} are outside its memory", name()));
  auto active =
      ServedActive::resume(core_->own_active(), port.handle(), core_->address(), memory_.head(), active_room_, state);
  if (!active) return base::cannot_restore(fmt::format("{}: {}", name(), active.error().message));
  port.active = std::move(*active);
  blame(port.active->fault());
  return {};
}

Result<> Application::restore_pending(const ApplicationState& state) {
  for (const PendingState& saved : state.pending) {
    ApplicationPort* const port = this->port(saved.port);
    while (operations_.size() <= saved.index) operations_.emplace_back();
    Operation& operation = operations_[saved.index];
    if (port == nullptr || operation.phase != Operation::Phase::unused)
      return base::cannot_restore(fmt::format("operation {} of {} occurs twice or has no port", saved.index, name()));
    operation = {.name = saved.name,
                 .serial = saved.serial,
                 .handle = {saved.slot, saved.generation, {}},
                 .memory = {memory_.head() + saved.offset, saved.length},
                 .events = saved.events,
                 .port = saved.port,
                 .phase = saved.is_posted ? Operation::Phase::posted : Operation::Phase::deferred,
                 .is_outgoing = saved.is_outgoing};
    ++port->pending;
    ++pending_;
    if (operation.is_outgoing) ++sending_;
    if (!saved.is_posted) continue;
    engine_->shares.keep(posted_++);
    if (operation.is_outgoing) allowance_.sent(saved.length);
    if (!core_->give_memory(port->handle(), operation.handle, saved.index, std::span(&operation.memory, 1)) ||
        port->reserve(saved.events) != Status::ok)
      return base::cannot_restore(fmt::format("operation {} of {} is unknown to the engine", saved.index, name()));
  }
  std::uint64_t deferred = 0;
  for (std::uint32_t index = 0; index < ports_end_; ++index) {
    if (!ports_[index]) continue;
    const auto is_asked = [&](const DeferredRequest& waiting) {
      const auto place = static_cast<std::uint32_t>(waiting.request.operation);
      return place < operations_.size() && is_deferred(waiting) && operations_[place].port == index &&
             operations_[place].memory.iov_len == waiting.request.length;
    };
    if (!std::ranges::all_of(ports_[index]->deferred, is_asked))
      return base::cannot_restore(fmt::format("a deferred request of {} has no operation", name()));
    deferred += ports_[index]->deferred.size();
  }
  return deferred + posted_ - keys_given_ == pending_
             ? Result<>()
             : base::cannot_restore(fmt::format("an operation of {} is neither deferred nor posted", name()));
}

Result<> Application::restore_pairs(PairTools& tools, PairMemory memory, shm::Socket socket,
                                    const ApplicationPairsState& state) {
  auto pairs =
      ApplicationPairs::restore(core_->own_pairs(), tools, std::move(memory), std::move(socket), state, quota_);
  if (!pairs) {
    pairs.error().message = fmt::format("{}: {}", name(), pairs.error().message);
    return std::unexpected(std::move(pairs.error()));
  }
  pairs_ = std::move(*pairs);
  return {};
}

}  // namespace fairlead::host
