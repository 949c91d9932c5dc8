#pragma once
// What each opcode means: to the requester by the work request's opcode, to the responder by the wire's operation.

#include <array>
#include <cstdint>
#include <utility>

#include <fairlead/verbs/types.hpp>
#include <fairlead/verbs/work_completion.hpp>
#include <fairlead/verbs/work_request.hpp>

#include "wire/envelope.hpp"

namespace fairlead::qp {

struct OpcodeTraits {
  enum Kind : std::uint8_t { send, write, read, atomic, local } kind;
  bool has_imm;
  wire::Operation operation;
  verbs::WcOpcode completion;
  std::uint32_t right;  // that the target has to give; sends need none

  constexpr bool is_send() const { return kind == send; }
  constexpr bool is_atomic() const { return kind == atomic; }
  /// Eight bytes, in their place, at once.
  constexpr bool is_word() const { return is_atomic() || completion == verbs::WcOpcode::atomic_write; }
  /// From here to there.
  constexpr bool has_data() const { return kind == send || kind == write; }
  /// From there to here, in an answer of its own.
  constexpr bool has_result() const { return kind == read || kind == atomic; }
  /// Of this end alone: nothing is sent.
  constexpr bool is_local() const { return kind == local; }
  /// The peer's program has no part in it.
  constexpr bool is_one_sided() const { return kind == write ? !has_imm : has_result(); }
};

/// In the order of verbs::SendOpcode.
inline constexpr std::array<OpcodeTraits, 11> kOpcodes = [] {
  using enum OpcodeTraits::Kind;
  using Wire = wire::Operation;
  using verbs::WcOpcode;
  namespace rights = verbs::access;
  return std::array<OpcodeTraits, 11>{{
      {write, false, Wire::pair_write, WcOpcode::write, rights::remote_write},
      {write, true, Wire::pair_write, WcOpcode::write, rights::remote_write},
      {send, false, Wire::pair_send, WcOpcode::send, 0},
      {send, true, Wire::pair_send, WcOpcode::send, 0},
      {read, false, Wire::pair_read, WcOpcode::read, rights::remote_read},
      {atomic, false, Wire::pair_atomic, WcOpcode::compare_swap, rights::remote_atomic},
      {atomic, false, Wire::pair_atomic, WcOpcode::fetch_add, rights::remote_atomic},
      {local, false, Wire{}, WcOpcode::invalidate, 0},
      {local, false, Wire{}, WcOpcode::bind_window, 0},
      {send, false, Wire::pair_send, WcOpcode::send, 0},
      {write, false, Wire::pair_write, WcOpcode::atomic_write, rights::remote_write},
  }};
}();

constexpr bool is_opcode(verbs::SendOpcode opcode) {
  return std::to_underlying(opcode) < kOpcodes.size();
}
constexpr const OpcodeTraits& traits_of(verbs::SendOpcode opcode) {
  return kOpcodes[std::to_underlying(opcode)];
}
static_assert(traits_of(verbs::SendOpcode::write_imm).has_imm && traits_of(verbs::SendOpcode::send_imm).has_imm &&
              traits_of(verbs::SendOpcode::send).is_send() &&
              traits_of(verbs::SendOpcode::read).kind == OpcodeTraits::read &&
              traits_of(verbs::SendOpcode::compare_swap).completion == verbs::WcOpcode::compare_swap);

/// Whether a request of that operation brings data; others have no payload.
constexpr bool has_data(wire::Operation operation) {
  return operation == wire::Operation::pair_send || operation == wire::Operation::pair_write;
}
/// The right that such a request needs at the queue pair and the region.
constexpr std::uint32_t right_for(wire::Operation operation) {
  for (const OpcodeTraits& traits : kOpcodes)
    if (traits.operation == operation) return traits.right;
  return 0;
}

}  // namespace fairlead::qp
