// Contexts, and their handling in a process that forks or exits.

#include <fairlead/verbs/device.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <vector>

#include "base/roll.hpp"
#include "host/attach.hpp"
#include "verbs/context_state.hpp"
#include "verbs/port_watch.hpp"

namespace fairlead::verbs {
namespace {

constinit base::OfProcess<base::Roll<ContextState>> everybody;

// Sends out what peers are still owed before the process exits.
void linger_at_exit() {
  everybody->for_each([](const ContextState& context) { context.pair_core->linger(); });
}

// A forked child inherits the exit handler.
void prepare_exit() {
  static std::atomic<bool> is_prepared{false};
  if (!is_prepared.exchange(true)) std::atexit(linger_at_exit);
}

}  // namespace

std::unexpected<Error> failure(int error_number, std::string message) {
  Status status = Status::invalid;
  switch (error_number) {
    case ENOMEM:
      status = Status::no_memory;
      break;
    case EBUSY:
      status = Status::in_use;
      break;
    case EOPNOTSUPP:
      status = Status::not_supported;
      break;
    case EAGAIN:
      status = Status::again;
      break;
    case EIO:
      status = Status::bad_state;
      break;
    case EFAULT:
      status = Status::not_permitted;
      break;
    default:
      break;
  }
  return std::unexpected(Error{status, error_number, std::move(message)});
}

std::unexpected<Error> failure(Status status, std::string message) {
  const int error_number = status == Status::again ? EBUSY : status == Status::stale ? EINVAL : to_errno(status);
  return std::unexpected(Error{status, error_number, std::move(message)});
}

std::unexpected<Error> failure(Error error) {
  return error.system_errno != 0 ? std::unexpected(std::move(error)) : failure(error.status, std::move(error.message));
}

Result<> check_alive(const ContextState& context) {
  if (!context.is_dead()) return {};
  return failure(EIO, "this device was opened before fork(): open it again in the child");
}

// Contexts -----------------------------------------------------------------------------------------------------------

ContextState::ContextState(const Device& its_device, const ContextOptions& options)
    : device(its_device), personality(options.personality) {}

ContextState::~ContextState() {
  everybody->leave(*this);
  if (events != nullptr && !is_dead()) pair_core->close_notices(events);
}

Result<Context> Context::open(const Device& device, const ContextOptions& options) {
  auto settings = engine::EngineOptions::from_environment();
  if (!settings) {
    settings.error().system_errno = EINVAL;
    return std::unexpected(std::move(settings.error()));
  }
  for (const auto& [name, value] : options.engine) {
    if (auto set = settings->set(name, value); !set) {
      set.error().system_errno = EINVAL;
      return std::unexpected(std::move(set.error()));
    }
  }
  const base::SocketAddress address{.ip = device.gid, .scope = 0, .port = 0};
  auto core = host::attach(address, *settings, host::Use::queue_pairs);
  if (!core) {
    if (core.error().system_errno == 0) core.error().system_errno = to_errno(core.error().status);
    return std::unexpected(std::move(core.error()));
  }
  auto state = std::make_shared<ContextState>(device, options);
  state->core = std::move(*core);
  state->pair_core = state->core->pairs();
  if (state->pair_core == nullptr) return failure(EOPNOTSUPP, "this engine does not support queue pairs");
  state->accounts = state->pair_core->accounts();
  auto events = state->pair_core->open_notices();
  if (!events) return std::unexpected(std::move(events.error()));
  state->events = *events;
  state->port_number_in_context = state->event_owners.add(1);
  prepare_exit();
  everybody->enter(*state);
  return Context(std::move(state));
}

Result<> Context::close() {
  if (!state_) return failure(EINVAL, "this context is closed already");
  const std::uint32_t used = state_->domains.used() + state_->channels.used() + state_->queues.used();
  if (used != 0 && !state_->is_dead()) {
    return failure(EBUSY, std::to_string(used) + " domains, channels and completion queues are left in the context");
  }
  state_.reset();
  return {};
}

const Device& Context::device() const noexcept {
  return state_->device;
}

const DeviceLimits& Context::limits() const noexcept {
  return state_->limits;
}

Result<PortAttributes> Context::query_port(std::uint8_t port) const {
  if (port != 1) return failure(EINVAL, "a device has port 1 only");
  PortAttributes attributes;
  attributes.state = has_port(*state_) ? PortState::active : PortState::down;
  attributes.is_infiniband = state_->personality == Personality::ib;
  if (attributes.is_infiniband) {
    attributes.lid = static_cast<std::uint16_t>(state_->device.gid[14] << 8 | state_->device.gid[15]);
  }
  return attributes;
}

Result<Gid> Context::query_gid(std::uint8_t port, std::uint32_t index) const {
  if (port != 1 || index >= PortAttributes{}.gid_count) return failure(EINVAL, "no such port or GID index");
  return has_gid(index) ? state_->device.gid : Gid{};
}

Result<std::uint16_t> Context::query_pkey(std::uint8_t port, std::uint32_t index) const {
  if (port != 1 || index >= state_->limits.max_pkeys) return failure(EINVAL, "no such port or pkey index");
  return std::uint16_t{0xFFFF};
}

int Context::async_descriptor() const noexcept {
  return state_->events->descriptor();
}

Result<AsyncEvent> Context::get_async_event() {
  if (auto alive = check_alive(*state_); !alive) return std::unexpected(std::move(alive.error()));
  if (auto waited = wait_for_event(*state_); !waited) return std::unexpected(std::move(waited.error()));
  AsyncEvent event;
  const auto notice = state_->event_owners.get(*state_->events, event.cookie);
  if (!notice) return std::unexpected(notice.error());
  event.type = static_cast<AsyncEventType>(notice->kind);
  event.ticket = notice->cookie;
  return event;
}

void Context::ack_async_event(const AsyncEvent& event) noexcept {
  state_->event_owners.acknowledge(event.ticket, 1);
}

bool Context::progress() noexcept {
  return !state_->is_dead() && state_->pair_core->progress();
}

std::string Context::describe() const {
  if (state_->is_dead()) return {};
  constexpr std::size_t kPeersMost = 16;
  std::string text;
  const observe::EngineFacts facts = state_->core->facts();
  for (const observe::CounterFact& counter : facts.counters)
    if (counter.value != 0 && counter.name.starts_with("qp."))
      text += counter.name + " " + std::to_string(counter.value) + "\n";
  const auto& peers = facts.peers;
  for (std::size_t i = 0; i < std::min(peers.size(), kPeersMost); ++i) {
    text += "peer " + peers[i].address.to_string() + " reached by " + std::string(peers[i].path);
    if (!peers[i].path_reason.empty()) text += ", not shm: " + peers[i].path_reason;
    if (!peers[i].memory_reason.empty()) text += ", other memory only through the ring: " + peers[i].memory_reason;
    text += "\n";
  }
  if (peers.size() > kPeersMost) text += "and " + std::to_string(peers.size() - kPeersMost) + " more peers\n";
  return text;
}

}  // namespace fairlead::verbs
