#pragma once
// All subcommands of `fairlead`, and the examples at the end of their --help.

#include <CLI/CLI.hpp>

#include <span>
#include <string_view>
#include <vector>

namespace fairlead::tools {

struct CommandExamples {
  std::string_view command;
  std::vector<std::string_view> lines;  // without the leading `fairlead`
};

std::span<const CommandExamples> command_examples();

void add_commands(CLI::App& app, int& exit_code);

}  // namespace fairlead::tools
