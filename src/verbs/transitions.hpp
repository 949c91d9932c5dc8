#pragma once
// Which changes of a queue pair's state there are, and which attributes each needs and allows.

#include <cstdint>

#include <fairlead/error.hpp>
#include <fairlead/verbs/queue_pair.hpp>

#include "verbs/context_state.hpp"

namespace fairlead::verbs {

/// Whether `mask` may lead from `from` to `to`: EINVAL says what is missing or not allowed.
Result<> check_transition(QpType type, QpState from, QpState to, std::uint32_t mask);

/// Whether the values named by `mask` are in range on this device.
Result<> check_values(const ContextState& context, const QpAttributes& attributes, std::uint32_t mask);

/// Takes from `changed` what `mask` names.
void merge(QpAttributes& attributes, const QpAttributes& changed, std::uint32_t mask);

const char* name_of(QpState state);

}  // namespace fairlead::verbs
