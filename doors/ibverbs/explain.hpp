#pragma once
// FAIRLEAD_EXPLAIN=1: at exit, reports on standard error what every context did, and explains each failed completion in
// a sentence.

#include <fairlead/verbs.hpp>

namespace fairlead::ibverbs {

struct OpenContext;

/// Installs the report. Only the first call has an effect.
void explain_at_exit();
/// Records a failed completion that a program has polled.
void explain_failure(const verbs::WorkCompletion& completion);
/// Records a context that is about to close, and that programs can no longer find.
void explain_context(const OpenContext& context);

}  // namespace fairlead::ibverbs
