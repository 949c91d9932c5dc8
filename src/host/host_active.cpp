#include "host/host_active.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "base/ensure.hpp"
#include "base/log.hpp"
#include "host/active_request.hpp"
#include "host/lost_peer.hpp"

namespace fairlead::host {
namespace {

std::uint8_t number_of(Request::Kind kind) {
  return static_cast<std::uint8_t>(kind);
}

std::uint64_t offset_of(const ClientMemory& memory, const std::byte* at) {
  return static_cast<std::uint64_t>(at - memory.at(0));
}

}  // namespace

/// Returns when the host engine has handled the request. Returns false if it has ended.
bool HostActive::tell(engine::PortHandle port, const Request& request) {
  return core_.host_.wait_until_served(core_.push_surely(port, request));
}

ClientActive& HostActive::active_of(engine::PortHandle port) const {
  ClientActive* const active = core_.find(port).active.get();
  ENSURE(active != nullptr, "port slot {} takes no active messages", port.slot);
  return *active;
}

// Set-up -------------------------------------------------------------------------------------------------------------

Status HostActive::activate(engine::PortHandle port) {
  if (core_.find(port).active) return Status::bad_state;
  auto active = ClientActive::make(core_.host_.shared_memory());
  if (!active) return active.error().status;
  const Request request{.offset = offset_of(core_.host_.memory(), (*active)->begin()),
                        .kind = number_of(Request::Kind::activate)};
  const Status status = core_.ask_and_wait(port, request);
  if (status == Status::ok) core_.find(port).active = std::move(*active);
  return status;
}

Status HostActive::set_access(engine::PortHandle port, const engine::AccessRule& rule) {
  return tell(port, to_request(rule)) ? Status::ok : Status::restarted;
}

/// The host engine uses the shadow of the previous segment until it has the new one.
Status HostActive::set_segment(engine::PortHandle port, const engine::Segment& segment) {
  ClientActive& active = active_of(port);
  ClientActive::Place place{.segment = segment, .shadow = {}, .number = active.place().number + 1};
  if (segment.length > 0 && segment.length <= kSegmentMax)
    place.shadow = ClientMemory::allocate(core_.host_.shared_memory(), segment.length);
  const bool has_shadow = place.shadow != nullptr;
  if (!has_shadow) place.segment = {};
  const Request request{.offset = has_shadow ? offset_of(core_.host_.memory(), place.shadow.get()) : 0,
                        .length = place.segment.length,
                        .key = place.number,
                        .kind = number_of(Request::Kind::set_segment)};
  const bool is_told = tell(port, request);
  active.set_place(std::move(place));
  if (has_shadow || segment.length == 0) return is_told ? Status::ok : Status::restarted;
  base::log(LogLevel::warning, LogTopic::engine, core_.address().to_string(),
            fmt::format("long messages to a segment of {} bytes are refused: the host engine serves segments of at "
                        "most {} bytes in all; set FAIRLEAD_CORE=embedded",
                        segment.length, kSegmentMax));
  return Status::no_memory;
}

// Sending ------------------------------------------------------------------------------------------------------------

Status HostActive::send_active(engine::PortHandle port, const engine::ActiveMessage& message,
                               engine::Conversation& conversation) {
  const bool is_request = message.kind == engine::ActiveKind::request;
  if (is_request) {
    if (static_cast<std::uint32_t>(message.name) >= kRequestPlacesMax) return Status::invalid;
    active_of(port).requests.open(message.name, message.to);  // its answer may come before this call returns
    conversation = {.way = message.name, .losses = port.slot};
  }
  const HostCore::Submission submission{.port = port,
                                        .memory = message.memory,
                                        .length = message.length,
                                        .cookie = message.cookie,
                                        .gives_bytes = true,
                                        .may_be_empty = true};
  engine::OperationHandle operation;
  return core_.submit(submission, to_request(message), operation);
}

void HostActive::forget_request(engine::PortHandle port, std::uint64_t name) {
  active_of(port).requests.close(name);
  core_.push_surely(port, {.epoch = name, .kind = number_of(Request::Kind::forget)});
}

void HostActive::ask_peer(const base::SocketAddress& peer) {
  const std::scoped_lock lock(core_.mutex_);
  Request request{.to = to_plain(peer), .kind = number_of(Request::Kind::ask_peer)};
  for (std::uint16_t index = 0; index < kPortsMax; ++index) {
    if (!core_.ports_[index] || !core_.ports_[index]->active) continue;
    request.port = index;
    core_.push(request);
    return core_.host_.wake();
  }
}

// Arrivals -----------------------------------------------------------------------------------------------------------

engine::Arrival* HostActive::next_arrival(engine::PortHandle port) {
  ClientActive& active = active_of(port);
  std::uint64_t copied = 0;
  engine::Arrival* const arrival = active.next(copied);
  if (arrival == nullptr) return nullptr;
  if (copied > 0) core_.counters_.copied_bytes.fetch_add(copied, std::memory_order_relaxed);
  if (active.takes_stall()) core_.host_.wake();
  return arrival;
}

void HostActive::release_arrival(engine::PortHandle port, engine::Arrival& arrival) {
  ClientActive& active = active_of(port);
  const bool had_slot = arrival.buffer != nullptr;
  active.release(arrival);
  if (had_slot && active.takes_stall()) core_.host_.wake();
}

// Lost peers ---------------------------------------------------------------------------------------------------------

std::uint64_t HostActive::losses() const {
  return core_.host_.memory().page().losses.load(std::memory_order_acquire) + (core_.has_ended() ? 1 : 0);
}

bool HostActive::next_loss(std::uint64_t& seen, engine::PeerLoss& loss) {
  if (seen == losses()) return false;
  if (core_.has_ended()) {
    seen = losses();
    loss = {.engine = {}, .status = Status::restarted, .way = kHost, .mark = seen};
    return true;
  }
  const auto answered = core_.call({.kind = static_cast<std::uint32_t>(Call::Kind::next_loss), .application = seen});
  if (!answered) return false;
  const auto found = loss_from(answered->answer, seen);
  if (found) loss = *found;
  return found.has_value();
}

bool HostActive::has_ended(const engine::Conversation& conversation, const engine::PeerLoss& loss) const {
  if (loss.way == kHost) return true;
  const auto slot = static_cast<std::size_t>(conversation.losses);
  const ClientPort* const port = slot < kPortsMax ? core_.ports_[slot].get() : nullptr;
  return port != nullptr && port->active && port->active->has_ended(conversation.way, loss);
}

}  // namespace fairlead::host
