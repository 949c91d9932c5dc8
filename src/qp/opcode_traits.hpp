#pragma once
// The properties of each opcode. The requester looks them up by the work request's opcode, the responder by the
// operation on the wire.

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
  std::uint32_t right;  // access right required at the target; 0 for sends

  constexpr bool is_send() const { return kind == send; }
  constexpr bool is_atomic() const { return kind == atomic; }
  /// Accesses 8 aligned bytes, atomically.
  constexpr bool is_word() const { return is_atomic() || completion == verbs::WcOpcode::atomic_write; }
  /// The request carries data.
  constexpr bool has_data() const { return kind == send || kind == write; }
  /// A separate answer carries data.
  constexpr bool has_result() const { return kind == read || kind == atomic; }
  /// The requester executes it; nothing is sent.
  constexpr bool is_local() const { return kind == local; }
  /// The peer's program does not take part in it.
  constexpr bool is_one_sided() const { return kind == write ? !has_imm : has_result(); }
};

/// Indexed by verbs::SendOpcode.
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

/// Returns whether a request with this operation carries data; others have no payload.
constexpr bool has_data(wire::Operation operation) {
  return operation == wire::Operation::pair_send || operation == wire::Operation::pair_write;
}
/// Returns the right that a request with this operation needs at the queue pair and the region.
constexpr std::uint32_t right_for(wire::Operation operation) {
  for (const OpcodeTraits& traits : kOpcodes)
    if (traits.operation == operation) return traits.right;
  return 0;
}

}  // namespace fairlead::qp
