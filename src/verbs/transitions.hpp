#pragma once
// The legal state transitions of a queue pair, and the attributes that each requires and allows.

#include <cstdint>

#include <fairlead/error.hpp>
#include <fairlead/verbs/queue_pair.hpp>

#include "verbs/context_state.hpp"

namespace fairlead::verbs {

/// Returns EINVAL, with the missing or forbidden attribute, unless `mask` may lead from `from` to `to`.
Result<> check_transition(QpType type, QpState from, QpState to, std::uint32_t mask);

/// Checks that the values named by `mask` are in range on this device.
Result<> check_values(const ContextState& context, const QpAttributes& attributes, std::uint32_t mask);

/// Copies the attributes that `mask` names from `changed`.
void merge(QpAttributes& attributes, const QpAttributes& changed, std::uint32_t mask);

const char* name_of(QpState state);

}  // namespace fairlead::verbs
