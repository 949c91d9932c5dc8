#pragma once
// Checks a model of tests/models with spin.

#include <sys/wait.h>

#include <cstdlib>
#include <string>

namespace fairlead::tests {

enum class ModelOutcome { holds = 0, fails = 1, not_checked = 2 };

/// `model`: its file in tests/models; `define`: a name that the model knows, or empty.
inline ModelOutcome check_model(const std::string& model, const std::string& define) {
  const std::string folder = FAIRLEAD_SOURCE_FOLDER "/tests/models";
  const int outcome = std::system(("'" + folder + "/run.sh' '" + folder + "/" + model + "' " + define).c_str());
  return WIFEXITED(outcome) ? static_cast<ModelOutcome>(WEXITSTATUS(outcome)) : ModelOutcome::not_checked;
}

}  // namespace fairlead::tests
