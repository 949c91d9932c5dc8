#include "sim/flow.hpp"

#include <algorithm>

namespace fairlead::sim {
namespace {

constexpr base::Duration kTryAgainAfter = std::chrono::microseconds(200);
constexpr base::Duration kCancelsWithin = std::chrono::milliseconds(20);

}  // namespace

void Flow::submit(Application& from, Application* to, base::Instant now) {
  next_at_ = now + (plan_.gap.count() == 0 ? base::Duration(0) : random_.between(plan_.gap / 2, plan_.gap * 3 / 2));
  const std::uint64_t size = plan_.is_mostly_small ? random_.mostly_small(plan_.size_min, plan_.size_max)
                                                   : random_.between(plan_.size_min, plan_.size_max);
  switch (plan_.kind == FlowPlan::Kind::mixed ? static_cast<FlowPlan::Kind>(random_.below(3)) : plan_.kind) {
    case FlowPlan::Kind::put:
      return submit_transfer(OperationKind::put, from, to, size, now);
    case FlowPlan::Kind::get:
      return submit_transfer(OperationKind::get, from, to, size, now);
    default:
      return submit_message(from, size, now);
  }
}

void Flow::submit_message(Application& from, std::uint64_t size, base::Instant now) {
  // A message goes to a random port, whether or not the target host is up.
  const auto port = static_cast<std::uint32_t>(random_.below(from.port_count()));
  count(from.send(number_, plan_.to, port, size, now), from, now);
}

void Flow::submit_transfer(OperationKind kind, Application& from, Application* to, std::uint64_t size,
                           base::Instant now) {
  Application::Request request{.kind = kind, .flow = number_, .to = plan_.to, .size = size};
  const Operation* last = from.find(last_.exposure);
  const bool is_last_stale = last != nullptr && last->state != Operation::State::pending;
  if (is_last_stale && (to == nullptr || random_.chance(plan_.misuses / 3))) {
    request.to_port = last_.port;
    request.epoch = last_.epoch;
    request.key = last_.key;
    request.misuse = Status::stale;
  } else if (to == nullptr || !take_descriptor(kind, *to, size, request, now)) {
    next_at_ = std::max(next_at_, now + kTryAgainAfter);
    return;
  }
  Operation* operation = from.transfer(request, now);
  // The transfer was refused, so nobody will use the exposure. Other exposures are taken back when their transfer has
  // ended.
  if (const Operation* exposure = from.find(request.exposure); exposure != nullptr && operation == nullptr)
    to->cancel_later(*exposure, now + random_.between(base::Duration(0), kCancelsWithin));
  count(operation, from, now);
}

bool Flow::take_descriptor(OperationKind kind, Application& to, std::uint64_t size, Application::Request& request,
                           base::Instant now) {
  const bool is_put = kind == OperationKind::put;
  const bool is_misused = random_.chance(plan_.misuses);
  const bool is_wrong_kind = is_misused && random_.chance(0.3);
  // For a put the exposed memory may be longer, for a get the initiator's own.
  const std::uint64_t more = random_.chance(0.3) ? random_.below(1000) : 0;
  Operation* exposure = to.expose(is_put != is_wrong_kind, is_put ? size + more : size, now);
  if (exposure == nullptr) return false;
  request.to_port = exposure->port;
  request.epoch = to.epoch();
  request.key = exposure->key;
  request.exposure = exposure->number;
  if (!is_put) request.size = size + more;
  last_ = {request.to_port, request.epoch, request.key, request.exposure};
  if (is_wrong_kind) {
    request.misuse = Status::not_permitted;
  } else if (is_misused && random_.chance(0.5)) {
    request.misuse = Status::stale;
    request.key ^= std::uint64_t{1} << (20 + random_.below(44));
  } else if (is_misused && is_put) {
    request.misuse = Status::too_big;
    request.size = exposure->size + 1 + random_.below(100);
  } else if (is_misused && exposure->size > 0) {
    request.misuse = Status::too_big;
    request.size = random_.below(exposure->size);
  }
  return true;
}

void Flow::count(Operation* operation, Application& from, base::Instant now) {
  if (operation == nullptr) {
    next_at_ = std::max(next_at_, now + kTryAgainAfter);
    return;
  }
  ++in_flight_;
  if (random_.chance(plan_.cancels)) {
    const auto wait = random_.mostly_small(1, static_cast<std::uint64_t>(kCancelsWithin.count()));
    from.cancel_later(*operation, now + base::Duration(static_cast<std::int64_t>(wait)));
  }
}

void Flow::ended(const Operation& operation) {
  if (in_flight_ > 0) --in_flight_;
  ++ended_count_;
  if (operation.status != Status::ok) return;
  bytes_ok_ += operation.size;
  if (latencies_.size() < kLatenciesMax) latencies_.push_back(operation.ended - operation.submitted);
}

}  // namespace fairlead::sim
