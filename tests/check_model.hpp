#pragma once
// Runs spin on a model of tests/models.

#include <sys/wait.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/environment.hpp"

namespace fairlead::tests {

enum class ModelOutcome { holds = 0, fails = 1, not_checked = 2 };

/// Which variant of a model: macros that it knows, separated by blanks, or none; and a fault to plant, or none.
struct ModelCase {
  const char* parts = "";
  const char* fault = "";
};

/// `model`: the name of its file in tests/models.
inline ModelOutcome check_model(const std::string& model, const ModelCase& which) {
  const std::string folder = FAIRLEAD_SOURCE_FOLDER "/tests/models", fault = which.fault;
  const std::string command = "'" + folder + "/run.sh' '" + folder + "/" + model + "' " + which.parts;
  const int outcome = std::system((fault.empty() ? command : command + " -- " + fault).c_str());
  return WIFEXITED(outcome) ? static_cast<ModelOutcome>(WEXITSTATUS(outcome)) : ModelOutcome::not_checked;
}

/// Returns the cases that this run checks: a third of them, selected by the commit, or all in a full run.
template <class Case>
std::vector<Case> drawn(const std::vector<Case>& cases) {
  constexpr std::uint64_t kShare = 3;
  std::vector<Case> some;
  for (std::size_t i = 0; i < cases.size(); ++i)
    if (is_drawn(i, kShare)) some.push_back(cases[i]);
  return some;
}

/// The name of a test case.
inline std::string name_of(const ModelCase& which) {
  std::string name = which.parts;
  if (*which.parts != '\0' && *which.fault != '\0') name += "_";
  name += which.fault;
  for (char& letter : name) letter = letter == ' ' ? '_' : letter;
  return name.empty() ? "whole" : name;
}

}  // namespace fairlead::tests
