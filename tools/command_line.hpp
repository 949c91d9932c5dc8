#pragma once
// What the subcommands share on their command lines.

#include <fairlead/error.hpp>
#include <fairlead/time.hpp>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fairlead::tools {

// Each adds its subcommand, which leaves the exit code there when it is called.
void add_bulkping(CLI::App& app, int& exit_code);
void add_perf(CLI::App& app, int& exit_code);
void add_explain(CLI::App& app, int& exit_code);
void add_options(CLI::App& app, int& exit_code);

/// "64M" becomes a number of bytes, 1 to `largest`.
CLI::Validator byte_size(std::uint64_t largest);

/// Seconds as a decimal fraction, `least` to a day.
CLI::Option* add_seconds(CLI::App& app, const std::string& name, Duration& target, double least, const std::string& description);

/// --set NAME=VALUE, any number of times, and --fault PLAN.
void add_engine_settings(CLI::App& app, std::vector<std::pair<std::string, std::string>>& target);

/// One line on standard error; the exit code that fits: usage for what is malformed, failed else.
int report_error(const Error& error);
/// Of a command line that cannot be parsed, or of --help and --version.
int report_parse(const CLI::App& app, const CLI::ParseError& error);

}  // namespace fairlead::tools
