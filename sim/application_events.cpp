// The events of an application, checked against the ledger.

#include <algorithm>

#include "sim/addresses.hpp"
#include "sim/application.hpp"
#include "sim/pattern.hpp"

namespace fairlead::sim {
namespace {

constexpr std::uint64_t kEvent = 5;

}  // namespace

bool Application::has_events() const {
  return std::ranges::any_of(ports_,
                             [&](const Port& port) { return !engine_.ports().find(port.handle)->events->is_empty(); });
}

std::uint64_t Application::dropped_at(std::uint32_t port) const {
  return engine_.ports().find(ports_[port].handle)->dropped_no_buffer.load(std::memory_order_relaxed);
}

void Application::look(std::uint32_t events_max, base::Instant now) {
  for (std::uint32_t port = 0; port < ports_.size(); ++port) {
    auto& events = *engine_.ports().find(ports_[port].handle)->events;
    for (std::uint32_t taken = 0; taken < events_max; ++taken) {
      const engine::Completion* next = events.consume();
      if (next == nullptr) break;
      const engine::Completion completion = *next;
      if (shared_.sabotage.strikes(Sabotage::Kind::lost_event)) continue;
      take(port, completion, now);
      if (shared_.sabotage.strikes(Sabotage::Kind::repeated_event)) take(port, completion, now);
      if (!shared_.findings.is_clean()) return;
    }
  }
  while (!cancels_.empty() && cancels_.begin()->first <= now) {
    Operation* operation = shared_.ledger.find(cancels_.begin()->second);
    cancels_.erase(cancels_.begin());
    if (operation->host == life_.host && operation->life == life_.number) cancel(*operation, now);
  }
  post_receives(now);
}

void Application::wind_down(base::Instant now) {
  is_winding_down_ = true;
  cancels_.clear();
  // Iterates by number, because a cancel may end other operations, but adds none.
  const auto& all = shared_.ledger.operations();
  for (std::uint64_t number = 1; number < all.size(); ++number) {
    Operation& operation = *shared_.ledger.find(number);
    if (operation.host == life_.host && operation.life == life_.number) cancel(operation, now);
  }
}

void Application::take(std::uint32_t port, const engine::Completion& completion, base::Instant now) {
  Findings& findings = shared_.findings;
  shared_.trace.add(now, {kEvent, life_.host, completion.cookie, completion.length, completion.offset,
                          static_cast<std::uint64_t>(completion.status), completion.is_final});
  shared_.trace.say(now, "h{}        event of {}: {} {} B at {}{}", life_.host, completion.cookie,
                    to_string(completion.status), completion.length, completion.offset,
                    completion.is_final ? "" : ", more to come");
  Operation* operation = shared_.ledger.find(completion.cookie);
  if (operation == nullptr || operation->host != life_.host || operation->life != life_.number) {
    return findings.add("host {} got an event of nobody's operation ({})", life_.host, completion.cookie);
  }
  if (operation->state != Operation::State::pending) {
    return findings.add("host {} got another event of operation {}, which had ended {}", life_.host, operation->number,
                        to_string(operation->status));
  }
  SIM_CHECK(findings, operation->port == port, "event of operation {} came to port {}, not {}", operation->number, port,
            operation->port);
  const base::Instant at = base::Instant(base::Duration(completion.time_ns)) - life_.clock_offset;
  SIM_CHECK(findings, at <= now && (at >= operation->submitted || operation->kind == OperationKind::receive),
            "operation {} of host {}, submitted at {}, ended at {}, and it is {}", operation->number, life_.host,
            to_text(operation->submitted - kBegin), to_text(at - kBegin), to_text(now - kBegin));
  SIM_CHECK(findings,
            completion.is_final || (operation->kind == OperationKind::receive && completion.status == Status::ok),
            "operation {} got an event ({}) that is not the last", operation->number, to_string(completion.status));
  if (completion.status == Status::ok) {
    operation->kind == OperationKind::receive ? take_message(*operation, completion)
                                              : take_transfer(*operation, completion);
  } else {
    SIM_CHECK(findings, completion.length == 0, "operation {} ended {} with {} bytes", operation->number,
              to_string(completion.status), completion.length);
  }
  if (findings.is_clean() && completion.is_final) finish(*operation, completion, now);
}

void Application::take_message(Operation& receive, const engine::Completion& completion) {
  Findings& findings = shared_.findings;
  ++receive.messages;
  SIM_CHECK(findings, receive.messages <= receive.messages_max, "receive {} got {} messages, at most {} were asked for",
            receive.number, receive.messages, receive.messages_max);
  if (completion.offset < receive.filled || completion.offset + completion.length > receive.size) {
    return findings.add("receive {} of {} bytes: a message of {} at {}, the last one ended at {}", receive.number,
                        receive.size, completion.length, completion.offset, receive.filled);
  }
  receive.filled = completion.offset + completion.length;
  shared_.ledger.message_arrived(receive, host_at(completion.source.engine), completion.source.port,
                                 receive.region->bytes().subspan(completion.offset, completion.length));
}

void Application::take_transfer(Operation& operation, const engine::Completion& completion) {
  Findings& findings = shared_.findings;
  const Operation* partner = shared_.ledger.find(operation.partner);
  const bool is_send = operation.kind == OperationKind::send;
  const std::uint32_t other = is_send || partner == nullptr ? operation.other_host : partner->host;
  if (!shared_.ledger.is_trusted(life_.host) || !shared_.ledger.is_trusted(other)) return;
  SIM_CHECK(findings, operation.misuse == Status::ok, "operation {} should have ended {}", operation.number,
            to_string(operation.misuse));
  if (partner == nullptr && !is_send)
    return findings.add("operation {} ended well, but no other side has part in it", operation.number);
  // Checks the length of the transfer, and whose bytes have arrived.
  const bool is_written = operation.kind == OperationKind::expose_writable || operation.kind == OperationKind::get;
  const std::uint64_t length = is_written ? partner->size : operation.size;
  if (completion.length != length) {
    return findings.add("operation {} ended with {} bytes instead of {}", operation.number, completion.length, length);
  }
  if (!is_written) return;
  const auto bytes = operation.region->bytes().first(length);
  if (const auto wrong = find_wrong(bytes, partner->number)) {
    findings.add("byte {} of {} that operation {} moved into {} is wrong", *wrong, length, partner->number,
                 operation.number);
  }
}

void Application::finish(Operation& operation, const engine::Completion& completion, base::Instant now) {
  SIM_CHECK(shared_.findings, completion.status != Status::canceled || operation.is_cancel_wanted,
            "operation {} of host {} ended canceled, but nobody wanted that", operation.number, life_.host);
  const bool is_receive = operation.kind == OperationKind::receive;
  release(operation.port, is_receive ? operation.messages_max : 1);
  if (is_receive) --ports_[operation.port].receives;
  shared_.ledger.end(operation, completion.status, now);
  std::byte* const memory = operation.region->bytes().data();
  regions_.give_back(std::move(operation.region), shared_.findings);
  if (operation.size > 0 && shared_.sabotage.strikes(Sabotage::Kind::late_write)) *memory ^= std::byte{1};
  if (operation.flow != kNoFlow) {
    note_peer_end(operation, completion.status, now);
    ended_.push_back(operation.number);
  }
}

void Application::note_peer_end(const Operation& operation, Status status, base::Instant now) {
  std::uint64_t& pending = pending_to_[operation.other_host];
  --pending;
  if (pending == 0 && (status == Status::silent || status == Status::unreachable))
    path_.given_up(address_of(operation.other_host), now);
}

}  // namespace fairlead::sim
