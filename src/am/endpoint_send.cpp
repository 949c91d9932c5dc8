// Sends requests, which may wait, and replies and refusals, which must never wait.

#include <algorithm>
#include <chrono>
#include <cstring>

#include "am/bundle_state.hpp"
#include "am/endpoint_state.hpp"

namespace fairlead::am {
namespace {

// Longest sleep while waiting for a credit or for room.
constexpr base::Duration kPause = std::chrono::milliseconds(10);
constexpr base::Duration kSendAgainFirst = std::chrono::microseconds(200);

constexpr std::size_t padded(std::size_t bytes) {
  return (bytes + 7) & ~std::size_t{7};
}

std::size_t data_max(Word::Kind kind) {
  switch (kind) {
    case Word::Kind::medium:
      return kMaxMedium;
    case Word::Kind::large:
      return kMaxLong;
    case Word::Kind::brief:
    case Word::Kind::get:
    case Word::Kind::empty:
      return 0;
  }
  return 0;
}

}  // namespace

Status EndpointState::send(Lock& lock, const Request& request) {
  if (is_inherited() || is_in_handler()) return Status::bad_state;
  if (request.arguments.size() > kArgumentsMax || request.data.size() > data_max(request.word.kind) ||
      request.length > kMaxLong || request.word.handler == 0 || request.to >= translations.size())
    return Status::invalid;
  if (!translations[request.to].is_used) return Status::not_available;
  while (translations[request.to].outstanding >= depth || !reserve_event()) {
    if (request.is_async) {
      bundle->poll(lock);
      if (translations[request.to].outstanding >= depth || !reserve_event()) return Status::again;
      break;
    }
    bundle->poll(lock);
    if (translations[request.to].outstanding >= depth) bundle->pause(lock, base::MonotonicClock::now() + kPause);
    // Handlers and other threads have run meanwhile: check again.
    if (request.to >= translations.size() || !translations[request.to].is_used) return Status::not_available;
  }
  Translation& translation = translations[request.to];
  const std::uint32_t slot = exchanges.acquire();
  Exchange& exchange = exchanges[slot];
  exchange.is_open = true;
  exchange.translation = request.to;
  exchange.handler = request.word.handler;
  exchange.argument_count = static_cast<std::uint8_t>(request.arguments.size());
  std::ranges::copy(request.arguments, exchange.arguments.begin());
  // Padding, which is sent too.
  if (request.arguments.size() % 2 != 0) exchange.arguments[request.arguments.size()] = 0;
  ++translation.outstanding;
  ++outstanding;
  bundle->rouse();
  const bool is_get = request.word.kind == Word::Kind::get;
  std::size_t head = padded(request.arguments.size_bytes());
  exchange.pieces[0] = {exchange.arguments.data(), head};
  if (is_get) {
    // The arguments stay here for the reply handler. The request carries only the source offset and the length.
    const std::array<std::uint64_t, 2> wanted{request.source_offset, request.length};
    head = sizeof wanted;
    exchange.buffer = buffers.take(head);
    std::memcpy(exchange.buffer.get(), wanted.data(), head);
    exchange.pieces[0] = {exchange.buffer.get(), head};
    exchange.data_length = head;
  } else if (request.is_async || request.data.empty()) {
    exchange.data = request.data.data();
  } else {
    exchange.buffer = buffers.take(request.data.size());
    exchange.data_length = request.data.size();
    std::memcpy(exchange.buffer.get(), request.data.data(), request.data.size());
    exchange.data = exchange.buffer.get();
  }
  exchange.pieces[1] = {const_cast<std::byte*>(exchange.data), request.data.size()};
  Word word = request.word;
  word.arguments = exchange.argument_count;
  exchange.message = {.to = translation.peer,
                      .kind = engine::ActiveKind::request,
                      .is_placed = word.kind == Word::Kind::large,
                      .word = word.pack(),
                      .head = static_cast<std::uint16_t>(head),
                      .access = translation.key,
                      .name = exchanges.name_of(slot),
                      .offset = request.offset,
                      .memory = exchange.pieces,
                      .length = head + request.data.size(),
                      .cookie = exchanges.name_of(slot)};
  if (bundle->domain->request_timeout != Duration::zero()) exchange.begun = base::MonotonicClock::now();
  const std::uint64_t name = exchange.message.name;
  const Status status = submit(slot);
  if (status == Status::again || status == Status::no_memory) {
    exchange.pause = kSendAgainFirst;
    held.push_back(name);
    return Status::ok;
  }
  if (status != Status::ok) give_back(lock, slot, Refusal::unreachable);
  return Status::ok;
}

// Reserves room for an event: the engine reports the completion of each message that it did not copy by one.
bool EndpointState::reserve_event() {
  constexpr std::uint32_t kAtOnce = 64;
  if (events_pending < events_reserved) return true;
  if (core.reserve_events(port, kAtOnce) != Status::ok) return false;
  events_reserved += kAtOnce;
  return true;
}

Status EndpointState::submit(std::uint32_t slot) {
  Exchange& exchange = exchanges[slot];
  const bool is_referenced = !ports.is_copied(exchange.message.length);
  if (is_referenced && !reserve_event()) return Status::again;
  const Status status = ports.send_active(port, exchange.message, exchange.conversation);
  if (status == Status::ok && is_referenced) {
    exchange.is_engine_busy = true;
    ++events_pending;
  }
  return status;
}

// Ends the request and frees its credit: no reply is needed any more.
void EndpointState::close(std::uint32_t slot) {
  Exchange& exchange = exchanges[slot];
  if (!exchange.is_open) return;
  exchange.is_open = false;
  --outstanding;
  --translations[exchange.translation].outstanding;
}

void EndpointState::release_if_over(std::uint32_t slot) {
  Exchange& exchange = exchanges[slot];
  if (exchange.is_open || exchange.is_engine_busy || exchange.is_shown) return;
  if (exchange.buffer) buffers.give(std::move(exchange.buffer), exchange.data_length);
  exchanges.release(slot);
}

void EndpointState::give_back(Lock& lock, std::uint32_t slot, Refusal refusal) {
  const Exchange& exchange = exchanges[slot];
  requests_to_left += refusal == Refusal::left;
  const Word word = Word::unpack(exchange.message.word);
  const Returned returned{.refusal = refusal,
                          .operation = word.operation(true),
                          .translation = exchange.translation,
                          .handler = exchange.handler,
                          .arguments = std::span(exchange.arguments).first(exchange.argument_count),
                          .data = {exchange.data, exchange.pieces[1].iov_len}};
  close(slot);
  // A slow peer may still reply: ignore that reply.
  ports.forget_request(port, exchange.message.name);
  ++bundle->returned;
  exchanges[slot].is_shown = true;
  call_error_handler(lock, returned);
  exchanges[slot].is_shown = false;
  release_if_over(slot);
}

// Replies and refusals ------------------------------------------------------------------------------------------------

Status EndpointState::reply(Delivered& delivered, Word word, std::uint64_t offset, std::span<const std::byte> data,
                            std::span<const Argument> arguments) {
  if (is_inherited() || !delivered.may_reply) return Status::bad_state;
  if (arguments.size() > kArgumentsMax || data.size() > data_max(word.kind) || word.handler == 0)
    return Status::invalid;
  delivered.may_reply = false;
  alignas(8) std::array<Argument, kArgumentsMax> words{};
  std::ranges::copy(arguments, words.begin());
  word.arguments = static_cast<std::uint8_t>(arguments.size());
  const engine::Arrival& arrival = delivered.arrival;
  send_back({.to = arrival.source,
             .kind = engine::ActiveKind::reply,
             .is_placed = word.kind == Word::Kind::large,
             .word = word.pack(),
             .name = arrival.name,
             .reply_access = arrival.reply_access,
             .offset = offset},
            std::as_bytes(std::span(words)).first(padded(arguments.size_bytes())), data, true);
  return Status::ok;
}

void EndpointState::send_back(engine::ActiveMessage message, std::span<const std::byte> head,
                              std::span<const std::byte> data, bool is_copied) {
  message.head = static_cast<std::uint16_t>(head.size());
  message.length = head.size() + data.size();
  const bool is_referenced = !ports.is_copied(message.length);
  if (!is_referenced) {
    const std::array<iovec, 2> pieces{
        {{const_cast<std::byte*>(head.data()), head.size()}, {const_cast<std::byte*>(data.data()), data.size()}}};
    message.memory = pieces;
    engine::Conversation conversation;
    const Status status = ports.send_active(port, message, conversation);
    // A peer that is gone needs no reply.
    if (status != Status::again && status != Status::no_memory) return;
  }
  const std::uint32_t slot = exchanges.acquire();
  Exchange& exchange = exchanges[slot];
  if (!head.empty()) std::memcpy(exchange.arguments.data(), head.data(), head.size());
  exchange.data = data.data();
  if (is_copied && !data.empty()) {
    exchange.buffer = buffers.take(data.size());
    exchange.data_length = data.size();
    std::memcpy(exchange.buffer.get(), data.data(), data.size());
    exchange.data = exchange.buffer.get();
  }
  exchange.pieces = {{{exchange.arguments.data(), head.size()}, {const_cast<std::byte*>(exchange.data), data.size()}}};
  exchange.message = message;
  exchange.message.memory = exchange.pieces;
  exchange.message.cookie = exchanges.name_of(slot);
  const Status status = is_referenced ? submit(slot) : Status::again;
  if (status == Status::again || status == Status::no_memory) {
    held.push_back(exchanges.name_of(slot));
  } else {
    release_if_over(slot);
  }
}

void EndpointState::send_held(Lock& lock) {
  const auto now = base::MonotonicClock::now();
  for (std::size_t left = held.size(), i = 0; left > 0; --left) {
    const std::uint64_t name = held[i];
    Exchange* exchange = exchanges.find(name);
    const std::uint32_t slot = ExchangeTable::slot_of(name);
    const bool is_request = exchange != nullptr && exchange->message.kind == engine::ActiveKind::request;
    if (exchange != nullptr && (!is_request || exchange->is_open)) {
      if (now < exchange->send_again_at || exchange->is_engine_busy) {
        ++i;
        continue;
      }
      const Status status = submit(slot);
      if (status == Status::again || status == Status::no_memory) {
        ++i;
        continue;
      }
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
      if (is_request && status != Status::ok) {
        give_back(lock, slot, Refusal::unreachable);
        return;  // handlers have run and may have changed the list
      }
      if (!is_request) release_if_over(slot);
    } else {
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

}  // namespace fairlead::am
