// The calls of an application about active messages: rare ones, which are answered at once.

#include <utility>

#include "host/active_request.hpp"
#include "host/application.hpp"

namespace fairlead::host {

void Application::take_active(ApplicationPort& port, const Request& request) {
  using Kind = Request::Kind;
  const auto kind = static_cast<Kind>(request.kind);
  if (kind == Kind::activate) return reply(activate(port, request), 0);
  if (!port.active) return blame("it set up active messages at a port that takes none");
  switch (kind) {
    case Kind::set_access:
      return port.active->set_access(to_rule(request));
    case Kind::set_segment:
      return set_segment(port, request);
    case Kind::forget:
      return port.active->forget(request.epoch);
    case Kind::ask_peer:
      return core_->own_active().ask_peer(from_plain(request.to));
    default:
      return leave_active();
  }
}

Status Application::activate(ApplicationPort& port, const Request& request) {
  if (port.active) return Status::bad_state;
  if (active_room_.ports >= kActivePortsMax) return Status::no_memory;
  if (request.offset % 4096 != 0 || !is_inside(request.offset, ActiveLayout::bytes())) {
    blame("it named memory outside its shared memory");
    return Status::invalid;
  }
  auto opened = ServedActive::open(core_->own_active(), port.handle(), core_->address(),
                                   memory_.head() + request.offset, active_room_);
  if (!opened) return opened.error().status;
  port.active = std::move(*opened);
  return Status::ok;
}

void Application::set_segment(ApplicationPort& port, const Request& request) {
  if (!is_inside(request.offset, request.length)) return blame("it named memory outside its shared memory");
  const bool is_there = request.length > 0;
  port.active->set_segment({.base = is_there ? memory_.head() + request.offset : nullptr, .length = request.length},
                           request.key);
}

/// Replies with the number of operations that still send.
void Application::leave_active() {
  for (std::uint32_t index = 0; index < ports_end_; ++index)
    if (ports_[index] && ports_[index]->active) ports_[index]->active->leave();
  reply(Status::ok, sending_);
}

/// Returns true if there were arrivals.
bool Application::give_arrivals(ApplicationPort& port, bool (ServedActive::*step)()) {
  const bool any = (*port.active.*step)();
  if (any) port.note_news();
  allowance_.received(port.active->take_given_bytes());
  blame(port.active->fault());
  return any;
}

/// Publishes how many peers the engine has lost. Waiters of all ports look at them.
void Application::show_losses() {
  const std::uint64_t losses = core_->own_active().losses();
  if (losses == losses_shown_) return;
  losses_shown_ = losses;
  page().losses.store(losses, std::memory_order_release);
  for (std::uint32_t index = 0; index < ports_end_; ++index)
    if (ports_[index]) ports_[index]->note_news();
}

}  // namespace fairlead::host
