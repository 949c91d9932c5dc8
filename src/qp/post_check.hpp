#pragma once
// Checks whether a queue pair with this plan could ever accept a request, whatever its state and free slots.

#include <cstdint>

#include <fairlead/verbs/work_request.hpp>

#include "qp/opcode_traits.hpp"
#include "qp/pair_core.hpp"

namespace fairlead::qp {

/// The additional conditions of atomic writes and bindings.
inline bool is_possible_word_or_binding(const PairPlan& plan, const verbs::SendRequest& request, std::uint64_t length) {
  if (request.opcode == verbs::SendOpcode::bind_window) return request.binding != nullptr;
  if (request.opcode != verbs::SendOpcode::atomic_write) return true;
  constexpr std::uint64_t kWord = sizeof(std::uint64_t);
  return plan.type == verbs::QpType::rc && length == kWord && request.remote_addr % kWord == 0;
}

/// Sets `length` to the bytes of all SGEs together.
inline bool is_possible(const PairPlan& plan, const verbs::SendRequest& request, std::uint64_t& length) {
  // The caller chose the number of SGEs, so it is checked before any of them is read.
  if (request.sges.size() > plan.capacity.max_send_sge || !is_opcode(request.opcode)) return false;
  length = 0;
  for (const verbs::Sge& sge : request.sges) length += sge.length;
  const OpcodeTraits& traits = traits_of(request.opcode);
  const bool names_window = traits.is_local() || request.opcode == verbs::SendOpcode::send_invalidate;
  if (plan.type == verbs::QpType::ud && (!traits.is_send() || names_window || request.to == nullptr)) return false;
  if (plan.type == verbs::QpType::uc && traits.has_result()) return false;
  if (request.opcode >= verbs::SendOpcode::bind_window && !is_possible_word_or_binding(plan, request, length))
      [[unlikely]]
    return false;
  const bool is_inlined = (request.flags & verbs::send_flags::inlined) != 0;
  return !is_inlined || (traits.has_data() && length <= plan.capacity.max_inline);
}

}  // namespace fairlead::qp
