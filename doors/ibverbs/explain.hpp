#pragma once
// FAIRLEAD_EXPLAIN=1: at exit, on standard error, what every context did and each completion that failed, with its
// cause in a sentence.

#include <string>

#include <fairlead/verbs.hpp>

namespace fairlead::ibverbs {

/// Installs the report; the first call counts.
void explain_at_exit();
/// A completion that a program got and that is no success.
void explain_failure(const verbs::WorkCompletion& completion);
/// A context that is about to close.
void explain_context(const std::string& device, const verbs::Context& context);

}  // namespace fairlead::ibverbs
