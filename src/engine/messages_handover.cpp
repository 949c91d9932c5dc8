#include "engine/messages_handover.hpp"

#include <string>
#include <string_view>

#include "base/saved.hpp"
#include "base/scatter.hpp"

namespace fairlead::engine {
namespace {

/// Returns whether no local peer is involved in the operation.
bool can_be_kept(const Operation& operation) {
  return !operation.is_withdrawn && !operation.is_used_up && !operation.is_spare &&
         operation.kind != OperationKind::loan;
}

bool is_sound(const Operation& operation) {
  const bool is_known = operation.kind < OperationKind::loan && operation.status <= Status::system;
  const bool is_transfer = operation.kind == OperationKind::put || operation.kind == OperationKind::get;
  return is_known && (!operation.is_to_repeat || (is_transfer && operation.is_answer_pending)) &&
         operation.fill <= operation.length && operation.length_done <= operation.length &&
         (operation.kind != OperationKind::receive || operation.is_busy ||
          (operation.is_in_chain && operation.messages_left > 0 && operation.size_min > 0));
}

}  // namespace

Result<MessagesState> MessagesHandover::save() {
  if (messages_.loans_.taken() != 0 || messages_.exposures_.is_withdrawing())
    return std::unexpected(Error{Status::not_supported, 0, "a process of this host is at memory that it was lent"});
  MessagesState saved{.operation_names = context_.operations.names(),
                      .placement_names = context_.placements.names(),
                      .operations = {},
                      .placements = {},
                      .answers = {}};
  bool are_kept = true;
  context_.operations.for_each([&](std::uint32_t slot, const Operation& operation) {
    are_kept &= can_be_kept(operation);
    saved.operations.push_back({.slot = slot, .operation = operation});
  });
  context_.placements.for_each([&](std::uint32_t slot, const Placement& placement) {
    saved.placements.push_back({.slot = slot, .placement = placement});
  });
  messages_.answers_.waiting_.for_each([&](link::PeerHandle peer, const Answers::Waiting& answer) {
    saved.answers.push_back({.peer = peer, .envelope = answer.envelope, .exposure = answer.exposure});
  });
  if (!are_kept) return std::unexpected(Error{Status::not_supported, 0, "it has lent messages, or spare buffers"});
  return saved;
}

Result<> MessagesHandover::restore(const MessagesState& saved, base::Instant now) {
  if (!context_.operations.restore(saved.operation_names) || !context_.placements.restore(saved.placement_names) ||
      context_.operations.used() != saved.operations.size() || context_.placements.used() != saved.placements.size())
    return base::cannot_restore("its operations do not fit in the table");
  for (const OperationState& operation : saved.operations)
    if (auto restored = restore(operation, now); !restored) return restored;
  for (const auto& [slot, placement] : saved.placements) {
    const Operation* const into = context_.operations.find(placement.operation);
    const bool fits =
        into == nullptr || (placement.offset <= into->length && placement.size <= into->length - placement.offset);
    if (!fits || !is_placement(slot) || placement.state > Placement::State::abandoned ||
        placement.status > Status::system)
      return base::cannot_restore("a message on its way contradicts itself");
    context_.placements[slot] = placement;
  }
  for (const auto& [slot, operation] : saved.operations)
    if (!has_sound_placements(context_.operations.name_of(slot), operation))
      return base::cannot_restore("a message on its way has a place that is another's");
  for (const AnswerState& answer : saved.answers) {
    if (!is_of_network(answer.peer)) return base::cannot_restore("an answer is for a peer that there is not");
    if (!messages_.answers_.waiting_.add(answer.peer, {answer.envelope, answer.exposure}, now).is_taken)
      return base::cannot_restore("it has more answers than may wait");
  }
  return {};
}

bool MessagesHandover::is_of_network(link::PeerHandle peer) const {
  return peer.slot < context_.options.get(Option::peers_max);
}

Result<> MessagesHandover::restore(const OperationState& saved, base::Instant now) {
  const auto& [slot, operation] = saved;
  Operations& operations = context_.operations;
  const std::uint64_t name = slot < operations.size() ? operations.name_of(slot) : 0;
  if (operations.find(name) == nullptr || !is_sound(operation) || !is_of_network(operation.peer) ||
      context_.ports.find_slot(operation.port) == nullptr)
    return base::cannot_restore("an operation contradicts itself");
  Operation& restored = operations[slot] = operation;
  restored.memory = {};
  restored.is_in_chain = restored.is_published = false;
  ++context_.ports[operation.port].operations;
  if (operation.has_patience) messages_.patience_.grant(name, now);
  if (operation.kind != OperationKind::receive && operation.is_in_chain) messages_.awaited_.add(slot, now);
  if (operation.is_to_repeat && !messages_.transfers_.repeated_.add(name, 0, now))
    return base::cannot_restore("there is no memory for a transfer that is to be repeated");
  return {};
}

/// Returns whether the chain of placements ends and belongs to this operation alone.
bool MessagesHandover::has_sound_placements(std::uint64_t name, const Operation& operation) {
  std::uint32_t left = context_.placements.used(), last = kNone;
  for (std::uint32_t next = operation.first_placement; next != kNone; next = context_.placements[next].next) {
    if (left-- == 0 || !is_placement(next) || context_.placements[next].operation != name) return false;
    last = next;
  }
  return operation.last_placement == last;
}

bool MessagesHandover::is_placement(std::uint32_t slot) {
  return slot < context_.placements.size() &&
         context_.placements.find(slot, context_.placements.generation(slot)) != nullptr;
}

bool MessagesHandover::is_arrival(std::uint64_t target, std::uint64_t size) {
  const auto cookie = transport::Cookie::of(target);
  const Placement* const placement = context_.placements.find(cookie.place, cookie.number);
  return cookie.client == transport::Client::messages && placement != nullptr && placement->size == size;
}

bool MessagesHandover::post(PortHandle port, std::uint32_t slot) {
  Operations& operations = context_.operations;
  const Operation* const receive = slot < operations.size() ? operations.find(operations.name_of(slot)) : nullptr;
  if (receive == nullptr || receive->kind != OperationKind::receive || receive->port != port.slot ||
      receive->is_in_chain || receive->is_busy)
    return false;
  operations.append(context_.ports.find(port)->posted, slot);
  return true;
}

bool MessagesHandover::give_memory(PortHandle port, OperationHandle name, std::uint64_t cookie,
                                   std::span<const iovec> memory) {
  Operation* const operation = context_.operations.find(port, name);
  if (operation == nullptr || operation->kind == OperationKind::blank || operation->cookie != cookie ||
      !operation->memory.empty() || base::scatter_size(memory) < operation->length)
    return false;
  operation->memory = memory;
  const bool is_exposed =
      operation->kind == OperationKind::expose_readable || operation->kind == OperationKind::expose_writable;
  if (is_exposed && !operation->is_busy) messages_.exposures_.publish(name.slot);
  return true;
}

std::uint32_t MessagesHandover::without_memory() {
  std::uint32_t count = 0;
  context_.operations.for_each([&](std::uint32_t, const Operation& operation) {
    count += operation.memory.empty() && operation.kind != OperationKind::blank;
  });
  return count;
}

}  // namespace fairlead::engine
