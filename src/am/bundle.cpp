#include <fairlead/am/bundle.hpp>

#include <fmt/format.h>
#include <sys/epoll.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "am/bundle_state.hpp"

namespace fairlead::am {
namespace {

constexpr std::uint32_t kFirstEndpoint = 0x41'0000, kEndpoints = 0x1'0000;  // port numbers

// The default of AM-2's error handler 0.
void print_and_abort(void*, Endpoint& endpoint, const Returned& returned) {
  if (returned.refusal == Refusal::left) return;
  Name to;
  std::uint64_t key = 0;
  const bool is_known = endpoint.translation(returned.translation, to, key) == Status::ok;
  fmt::print(stderr,
             "fairlead: message for handler {} of {} came back to {}: {} (code {}); set an error handler to go on\n",
             returned.handler, is_known ? to.to_string() : "an endpoint", endpoint.name().to_string(),
             explain(returned.refusal), static_cast<int>(returned.refusal));
  std::abort();
}

}  // namespace

std::string_view explain(Refusal refusal) noexcept {
  switch (refusal) {
    case Refusal::bad_arguments:
      return "its arguments are not valid";
    case Refusal::bad_entry:
      return "its entry in the table of translations is not valid";
    case Refusal::bad_tag:
      return "the receiving endpoint does not accept messages with this tag";
    case Refusal::bad_handler:
      return "the receiver has no such handler";
    case Refusal::bad_segment:
      return "the receiving endpoint has no segment";
    case Refusal::bad_length:
      return "its range is not inside the receiver's segment";
    case Refusal::bad_endpoint:
      return "the receiver has no such endpoint";
    case Refusal::congestion:
      return "no answer in time, or no memory at the receiver";
    case Refusal::unreachable:
      return "the receiving process was not found, became silent or ended";
    case Refusal::reply_rejected:
      return "the peer refused the reply";
    case Refusal::left:
      return "the receiving process announced its end and ended";
  }
  return "unknown reason";
}

Bundle::Bundle(const Domain& domain, BundleMode mode)
    : state_(std::make_unique<BundleState>(*this, domain.state_, mode)) {}

Bundle::~Bundle() {
  if (state_->is_inherited()) {
    base::keep_for_ever(std::shared_ptr<BundleState>(std::move(state_)));
    return;
  }
  stop_interrupts();
  while (!state_->endpoints.empty()) state_->take_out(state_->endpoints.back()->face);
}

Result<Endpoint*> Bundle::add_endpoint() {
  if (state_->is_inherited()) {
    return std::unexpected(Error{Status::bad_state, 0, "the domain was opened before fork(): open one in the child"});
  }
  engine::Core& core = *state_->domain->core;
  if (state_->endpoints.size() >= kEndpointsMax) {
    return std::unexpected(
        Error{Status::no_memory, 0, fmt::format("a bundle has at most {} endpoints: use another", kEndpointsMax)});
  }
  std::uint32_t number = 0;
  const auto port = core.open_port_dynamic(kFirstEndpoint, kEndpoints, number);
  if (!port) return std::unexpected(port.error());
  if (const Status status = state_->domain->ports->activate(*port); status != Status::ok) {
    core.close_port(*port);
    return std::unexpected(Error{status, 0, "the engine did not make an active port"});
  }
  auto endpoint = std::make_unique<EndpointState>(*state_, *port, number);
  endpoint->error_handler = &print_and_abort;
  Endpoint* face = &endpoint->face;
  state_->put_in(std::move(endpoint));
  return face;
}

Status Bundle::free_endpoint(Endpoint& endpoint) {
  if (state_->is_inherited() || is_in_handler()) return Status::bad_state;
  return state_->take_out(endpoint) ? Status::ok : Status::invalid;
}

Status Bundle::move_endpoint(Endpoint& endpoint, Bundle& to) {
  if (state_->is_inherited() || is_in_handler()) return Status::bad_state;
  if (to.state_->endpoints.size() >= kEndpointsMax) return Status::no_memory;
  auto taken = state_->take_out(endpoint);
  if (!taken) return Status::invalid;
  to.state_->put_in(std::move(taken));
  return Status::ok;
}

Status Bundle::poll() {
  if (state_->is_inherited() || is_in_handler()) return Status::bad_state;
  {
    BundleState::Lock lock(state_->lock);
    if (state_->poll(lock) != 0) return Status::ok;
  }
  state_->domain->core->give_way();
  return Status::ok;
}

Status Bundle::wait(Instant deadline) {
  return wait(deadline, {});
}

Status Bundle::wait(Instant deadline, const std::stop_token& stop) {
  if (state_->is_inherited() || is_in_handler()) return Status::bad_state;
  const base::Instant until(deadline == kNever ? base::kNever : base::Instant(deadline.time_since_epoch()));
  BundleState::Lock lock(state_->lock);
  bool has_news = false;
  while ((has_news ? state_->serve(lock) : state_->poll(lock)) == 0) {
    if (base::MonotonicClock::now() >= until) return Status::timed_out;
    if (stop.stop_requested()) return Status::canceled;
    has_news = !has_news && state_->pause(lock, until, stop);
  }
  return Status::ok;
}

bool Bundle::has_message() const {
  if (state_->is_inherited()) return false;
  BundleState::Lock lock(state_->lock);
  return state_->has_message();
}

int Bundle::descriptor() {
  if (state_->is_inherited()) return -1;
  BundleState::Lock lock(state_->lock);
  if (!state_->watch_descriptor.is_open()) {
    state_->watch_descriptor = base::FileDescriptor(::epoll_create1(EPOLL_CLOEXEC));
    if (!state_->watch_descriptor.is_open()) return -1;
    for (const auto& endpoint : state_->endpoints) state_->watch(*endpoint, true);
  }
  return state_->watch_descriptor.get();
}

bool Bundle::arm() {
  if (state_->is_inherited()) return false;
  BundleState::Lock lock(state_->lock);
  for (const auto& endpoint : state_->endpoints) {
    if (!state_->domain->core->arm_descriptor(endpoint->port)) return false;
  }
  return true;
}

Status Bundle::start_interrupts() {
  if (state_->is_inherited() || state_->thread.is_joinable()) return Status::bad_state;
  state_->lock.make_real();
  state_->is_stopping.store(false, std::memory_order_release);
  auto thread = base::Thread::start([state = state_.get()] { state->run(); });
  if (!thread) return Status::system;
  state_->thread = std::move(*thread);
  return Status::ok;
}

void Bundle::stop_interrupts() {
  if (!state_->thread.is_joinable()) return;
  state_->is_stopping.store(true, std::memory_order_release);
  {
    BundleState::Lock lock(state_->lock);
    for (const auto& endpoint : state_->endpoints) state_->domain->core->interrupt(endpoint->port);
  }
  state_->thread.join();
}

}  // namespace fairlead::am
