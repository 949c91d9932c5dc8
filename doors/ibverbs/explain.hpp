#pragma once
// FAIRLEAD_EXPLAIN=1: at exit, reports on standard error what every context did, and explains each failed completion in
// a sentence.

#include <string>

#include <fairlead/verbs.hpp>

namespace fairlead::ibverbs {

/// Installs the report. Only the first call has an effect.
void explain_at_exit();
/// Records a failed completion that a program has polled.
void explain_failure(const verbs::WorkCompletion& completion);
/// Records a context that is about to close.
void explain_context(const std::string& device, const verbs::Context& context);

}  // namespace fairlead::ibverbs
