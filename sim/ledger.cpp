#include "sim/ledger.hpp"

#include <algorithm>

#include "sim/pattern.hpp"

namespace fairlead::sim {

Operation& Ledger::open(OperationKind kind, std::uint32_t host, std::uint32_t life, base::Instant now) {
  Operation& operation = operations_.emplace_back();
  operation.number = operations_.size() - 1;
  operation.kind = kind;
  operation.host = host;
  operation.life = life;
  operation.submitted = now;
  add_pending(host, +1);
  return operation;
}

void Ledger::take_back(Operation& operation) {
  operation.state = Operation::State::gone;
  add_pending(operation.host, -1);
}

void Ledger::submitted(const Operation& operation) {
  if (operation.kind != OperationKind::send || operation.size >= kNamedSize) return;
  ++tiny_[{operation.host, operation.other_host, operation.other_port, operation.size}].sent;
}

void Ledger::end(Operation& operation, Status status, base::Instant now) {
  SIM_CHECK(findings_, operation.state == Operation::State::pending, "operation {} of host {} ended twice: {}, then {}",
            operation.number, operation.host, to_string(operation.status), to_string(status));
  operation.state = Operation::State::ended;
  operation.status = status;
  operation.ended = now;
  add_pending(operation.host, -1);
  ++ended_;
}

void Ledger::bury(std::uint32_t host, std::uint32_t life) {
  for (Operation& operation : operations_) {
    if (operation.host != host || operation.life != life || operation.state != Operation::State::pending) continue;
    operation.state = Operation::State::gone;
    operation.region.reset();
    add_pending(host, -1);
  }
}

Operation* Ledger::find(std::uint64_t number) {
  return number > 0 && number < operations_.size() ? &operations_[number] : nullptr;
}

void Ledger::message_arrived(const Operation& receiver, std::uint32_t from, std::uint32_t from_port,
                             std::span<const std::byte> bytes) {
  if (!is_trusted(from) || !is_trusted(receiver.host)) return;
  if (bytes.size() < kNamedSize) {
    TinyCount& count = tiny_[{from, receiver.host, receiver.port, bytes.size()}];
    ++count.received;
    SIM_CHECK(findings_, count.received <= count.sent,
              "host {} received {} messages of {} bytes from host {}, which sent only {}", receiver.host,
              count.received, bytes.size(), from, count.sent);
    SIM_CHECK(findings_, std::ranges::count(bytes, tiny_byte(from, bytes.size())) == std::ssize(bytes),
              "a message of {} bytes from host {} arrived damaged", bytes.size(), from);
    return;
  }
  Operation* message = find(name_in(bytes));
  if (message == nullptr || message->kind != OperationKind::send) {
    return findings_.add("host {} received a message of {} bytes that names no message ({:#x})", receiver.host,
                         bytes.size(), name_in(bytes));
  }
  ++message->received;
  SIM_CHECK(findings_, message->host == from && message->port == from_port,
            "message {} of host {} port {} arrived as from host {} port {}", message->number, message->host,
            message->port, from, from_port);
  SIM_CHECK(findings_, message->other_host == receiver.host && message->other_port == receiver.port,
            "message {} to host {} port {} arrived at host {} port {}", message->number, message->other_host,
            message->other_port, receiver.host, receiver.port);
  SIM_CHECK(findings_, message->size == bytes.size(), "message {} of {} bytes arrived with {}", message->number,
            message->size, bytes.size());
  SIM_CHECK(findings_, message->received == 1, "message {} of host {} to host {} arrived twice", message->number,
            message->host, message->other_host);
  if (const auto wrong = find_wrong(bytes, message->number)) {
    findings_.add("byte {} of message {} ({} bytes) arrived wrong", *wrong, message->number, bytes.size());
  }
}

Ledger::Missing Ledger::missing_at(std::uint32_t host, std::uint32_t port, base::Instant since) const {
  Missing missing;
  std::map<TinyKind, Missing> tiny_ended;
  for (const Operation& operation : operations_) {
    if (operation.kind != OperationKind::send || operation.other_host != host || operation.other_port != port) continue;
    if (!is_trusted(operation.host)) continue;
    const bool is_sure =
        operation.state == Operation::State::ended && operation.status == Status::ok && operation.submitted >= since;
    if (operation.size >= kNamedSize) {
      if (operation.received == 0) ++(is_sure ? missing.surely : missing.perhaps);
    } else {
      Missing& count = tiny_ended[{operation.host, host, port, operation.size}];
      ++(is_sure ? count.surely : count.perhaps);
    }
  }
  // For messages without a number, only the number of arrivals is known.
  for (const auto& [kind, count] : tiny_ended) {
    const auto found = tiny_.find(kind);
    const std::uint64_t received = found == tiny_.end() ? 0 : found->second.received;
    const std::uint64_t surely = count.surely > received ? count.surely - received : 0;
    missing.surely += surely;
    missing.perhaps += count.surely + count.perhaps - std::min(received, count.surely + count.perhaps) - surely;
  }
  return missing;
}

void Ledger::add_pending(std::uint32_t host, int change) {
  if (host >= pending_.size()) pending_.resize(host + 1);
  pending_[host] += static_cast<std::uint64_t>(static_cast<std::int64_t>(change));
}

}  // namespace fairlead::sim
