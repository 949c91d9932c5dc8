// Handles arrivals: requests run a handler, replies complete a request, refusals return a request to its sender.

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "am/bundle_state.hpp"
#include "am/endpoint_state.hpp"

namespace fairlead::am {
namespace {

constexpr base::Duration kCheckEvery = std::chrono::milliseconds(50);
constexpr base::Duration kSendAgainMost = std::chrono::milliseconds(20);

thread_local bool is_handler_running = false;

// Runs a handler without the bundle's lock.
template <typename Call>
void run_handler(EndpointState& endpoint, EndpointState::Lock& lock, Call&& call) {
  ++endpoint.running;
  const bool was_running = std::exchange(is_handler_running, true);
  lock.unlock();
  call();
  lock.lock();
  is_handler_running = was_running;
  --endpoint.running;
}

Refusal refusal_of(Status status) {
  switch (status) {
    case Status::not_permitted:
      return Refusal::bad_tag;
    case Status::not_supported:
      return Refusal::bad_handler;
    case Status::invalid:
      return Refusal::bad_segment;
    case Status::too_big:
      return Refusal::bad_length;
    case Status::stale:
      return Refusal::bad_endpoint;
    case Status::message_size:
      return Refusal::bad_arguments;
    case Status::canceled:
      return Refusal::left;
    case Status::again:
    case Status::no_memory:
    case Status::timed_out:
      return Refusal::congestion;
    default:
      return Refusal::unreachable;
  }
}

bool is_sender_lost(Status status) {
  return refusal_of(status) == Refusal::unreachable;
}

Message message_of(const engine::Arrival& arrival, Word word) {
  return {
      .size = word.size(),
      .is_request = arrival.kind == engine::ActiveKind::request,
      .arguments = {reinterpret_cast<const Argument*>(arrival.head_bytes), word.arguments},
      .data = word.kind == Word::Kind::brief ? std::span<std::byte>() : std::span(arrival.data, arrival.data_length)};
}

bool is_well_formed(const engine::Arrival& arrival, Word word) {
  return word.is_valid() && word.arguments * sizeof(Argument) <= arrival.head &&
         arrival.is_placed == (word.kind == Word::Kind::large) &&
         (word.kind != Word::Kind::medium || arrival.data_length <= kMaxMedium);
}

}  // namespace

bool is_in_handler() {
  return is_handler_running;
}

void EndpointState::look_after(Lock& lock) {
  engine::Completion completion;
  while (events_pending != 0 && core.next_event(port, completion)) {
    --events_pending;
    const std::uint32_t slot = ExchangeTable::slot_of(completion.cookie);
    Exchange* exchange = exchanges.find(completion.cookie);
    if (exchange == nullptr) continue;
    exchange->is_engine_busy = false;
    if (exchange->is_open && (completion.status != Status::ok || exchange->lost)) {
      give_back_failed(lock, completion.cookie, completion.status);
    } else {
      release_if_over(slot);
    }
  }
  if (ports.losses() != losses_seen) [[unlikely]]
    tell_losses(lock);
  if (!held.empty()) [[unlikely]]
    send_held(lock);
}

/// Handles a failed request. The engine may report the failure before or after the loss of the peer that caused it.
/// Querying the losses waits for the pass that reported the failure; by then the loss is known, too.
void EndpointState::give_back_failed(Lock& lock, std::uint64_t name, Status status) {
  const std::uint32_t slot = ExchangeTable::slot_of(name);
  if (!exchanges[slot].lost) tell_losses(lock);
  const Exchange* const exchange = exchanges.find(name);
  if (exchange != nullptr && exchange->is_open) give_back(lock, slot, exchange->lost.value_or(refusal_of(status)));
}

void EndpointState::tell_losses(Lock& lock) {
  engine::PeerLoss loss;
  while (ports.next_loss(losses_seen, loss)) {
    const Refusal refusal = loss.has_left ? Refusal::left : refusal_of(loss.status);
    for (std::uint32_t slot = 0; slot < exchanges.size(); ++slot) {
      Exchange& exchange = exchanges[slot];
      if (!exchange.is_open || !ports.has_ended(exchange.conversation, loss)) continue;
      // The engine itself reports the completion of messages that it still holds.
      if (exchange.is_engine_busy) {
        exchange.lost = refusal;
      } else {
        give_back(lock, slot, refusal);
      }
    }
  }
}

void EndpointState::check_time(Lock& lock, base::Instant now) {
  if (outstanding == 0 || now < check_at) return;
  check_at = now + kCheckEvery;
  const Duration timeout = bundle->domain->request_timeout;
  engine::RemotePort asked;
  for (std::uint32_t slot = 0; slot < exchanges.size(); ++slot) {
    const Exchange& exchange = exchanges[slot];
    if (!exchange.is_open || exchange.is_engine_busy) continue;
    if (timeout != Duration::zero() && now - exchange.begun >= timeout) {
      give_back(lock, slot, Refusal::congestion);
    } else if (exchange.message.to.engine != asked.engine) {
      asked = exchange.message.to;
      ports.ask_peer(asked.engine);
    }
  }
}

bool EndpointState::serve_one(Lock& lock) {
  if (held.size() >= kHeldMax) return false;
  engine::Arrival* arrival = ports.next_arrival(port);
  if (arrival == nullptr) return false;
  switch (arrival->kind) {
    case engine::ActiveKind::request:
      serve_request(lock, *arrival);
      break;
    case engine::ActiveKind::reply:
      serve_reply(lock, *arrival);
      break;
    case engine::ActiveKind::returned:
      serve_returned(lock, *arrival);
      break;
    case engine::ActiveKind::rejected: {
      const Word word = Word::unpack(arrival->word);
      if (word.is_valid()) {
        call_error_handler(lock, {.refusal = Refusal::reply_rejected,
                                  .operation = word.operation(false),
                                  .handler = word.handler,
                                  .arguments = {},
                                  .data = {}});
      }
      break;
    }
  }
  ports.release_arrival(port, *arrival);
  return true;
}

void EndpointState::serve_request(Lock& lock, engine::Arrival& arrival) {
  const Word word = Word::unpack(arrival.word);
  if (arrival.status != Status::ok) {
    if (!is_sender_lost(arrival.status)) refuse(arrival, arrival.status);
    return;
  }
  if (word.kind == Word::Kind::get) return serve_get(arrival);
  if (!is_well_formed(arrival, word) || word.kind == Word::Kind::empty) return refuse(arrival, Status::message_size);
  const Registered registered = handlers[word.handler];
  if (registered.handler == nullptr) return refuse(arrival, Status::not_supported);
  if (!registered.shape.accepts(word.arguments, word.size())) return refuse(arrival, Status::message_size);
  Delivered delivered{*this, arrival, true};
  run_handler(*this, lock, [&] { registered.handler(registered.context, delivered.token, message_of(arrival, word)); });
  if (!std::exchange(delivered.may_reply, false)) return;
  send_back({.to = arrival.source,
             .kind = engine::ActiveKind::reply,
             .word = Word{.kind = Word::Kind::empty}.pack(),
             .name = arrival.name,
             .reply_access = arrival.reply_access},
            {}, {}, true);
}

// Copies from our segment to the requester's; no handler runs here.
void EndpointState::serve_get(const engine::Arrival& arrival) {
  std::array<std::uint64_t, 2> wanted{};
  if (arrival.head < sizeof wanted) return refuse(arrival, Status::message_size);
  std::memcpy(wanted.data(), arrival.head_bytes, sizeof wanted);
  const auto [from, length] = wanted;
  if (segment.length == 0) return refuse(arrival, Status::invalid);
  if (from > segment.length || length > segment.length - from || length > kMaxLong)
    return refuse(arrival, Status::too_big);
  send_back({.to = arrival.source,
             .kind = engine::ActiveKind::reply,
             .is_placed = true,
             .word = Word{.kind = Word::Kind::large}.pack(),
             .name = arrival.name,
             .reply_access = arrival.reply_access,
             .offset = arrival.offset},
            {}, {segment.at(from), length}, false);
}

void EndpointState::refuse(const engine::Arrival& arrival, Status status) {
  const bool was_request = arrival.kind == engine::ActiveKind::request;
  send_back({.to = arrival.source,
             .kind = was_request ? engine::ActiveKind::returned : engine::ActiveKind::rejected,
             .status = status,
             .word = arrival.word,
             .name = arrival.name,
             .reply_access = arrival.reply_access},
            {}, {}, true);
}

void EndpointState::serve_reply(Lock& lock, engine::Arrival& arrival) {
  Exchange* exchange = exchanges.find(arrival.name);
  if (exchange == nullptr || !exchange->is_open || exchange->message.to != arrival.source) return;  // too late
  const std::uint32_t slot = ExchangeTable::slot_of(arrival.name);
  const bool is_get = Word::unpack(exchange->message.word).kind == Word::Kind::get;
  Word word = Word::unpack(arrival.word);
  Status status = arrival.status;
  if (status == Status::ok && !is_well_formed(arrival, word)) status = Status::message_size;
  if (is_get) {
    word = {Word::Kind::large, exchange->handler, exchange->argument_count};
  } else if (status == Status::ok && word.kind == Word::Kind::empty) {
    close(slot);
    release_if_over(slot);
    return;
  }
  const Registered registered = handlers[word.handler];
  if (status == Status::ok && registered.handler == nullptr) status = Status::not_supported;
  if (status == Status::ok && !registered.shape.accepts(word.arguments, word.size())) status = Status::message_size;
  if (status != Status::ok) {
    if (is_get || status == Status::no_memory) return give_back(lock, slot, refusal_of(status));
    if (!is_sender_lost(status)) refuse(arrival, status);
    close(slot);
    release_if_over(slot);
    return;
  }
  Message message = message_of(arrival, word);
  const std::array<Argument, kArgumentsMax> own = exchange->arguments;
  if (is_get) message.arguments = std::span(own).first(exchange->argument_count);
  close(slot);
  release_if_over(slot);
  Delivered delivered{*this, arrival, false};
  run_handler(*this, lock, [&] { registered.handler(registered.context, delivered.token, message); });
}

void EndpointState::serve_returned(Lock& lock, const engine::Arrival& arrival) {
  Exchange* exchange = exchanges.find(arrival.name);
  if (exchange == nullptr || !exchange->is_open || exchange->message.to != arrival.source) return;
  const std::uint32_t slot = ExchangeTable::slot_of(arrival.name);
  if (arrival.status != Status::again) return give_back(lock, slot, refusal_of(arrival.status));
  // The peer has no room at the moment.
  exchange->pause =
      std::min(std::max(2 * exchange->pause, base::Duration(std::chrono::microseconds(200))), kSendAgainMost);
  exchange->send_again_at = base::MonotonicClock::now() + exchange->pause;
  held.push_back(arrival.name);
}

void EndpointState::call_error_handler(Lock& lock, const Returned& returned) {
  const ErrorHandler handler = error_handler;
  void* context = error_context;
  run_handler(*this, lock, [&] { handler(context, face, returned); });
}

}  // namespace fairlead::am
