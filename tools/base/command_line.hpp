#pragma once
// Helpers that the subcommands share for their command lines.

#include <fairlead/error.hpp>
#include <fairlead/time.hpp>

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fairlead::tools {

// Each function adds its subcommand, which stores its exit code in `exit_code` when it runs.
void add_bulkping(CLI::App& app, int& exit_code);
void add_nettest(CLI::App& app, int& exit_code);
void add_perf(CLI::App& app, int& exit_code);
void add_keygen(CLI::App& app, int& exit_code);
void add_doctor(CLI::App& app, int& exit_code);
void add_explain(CLI::App& app, int& exit_code);
void add_options(CLI::App& app, int& exit_code);
void add_run(CLI::App& app, int& exit_code);
void add_top(CLI::App& app, int& exit_code);
void add_flight(CLI::App& app, int& exit_code);
void add_ps(CLI::App& app, int& exit_code);

/// Requires one subcommand. An unknown word is reported as typed.
void want_subcommand(CLI::App& app);
/// As want_subcommand(); without a subcommand runs `alone`, which returns false if it does not apply either.
void want_subcommand_or(CLI::App& app, std::function<bool()> alone);

/// Adds an option for an integer within a range.
template <typename Number>
CLI::Option* add_count(CLI::App& app, const std::string& name, Number& target, Number least, Number most,
                       const std::string& description) {
  return app.add_option(name, target, description)
      ->check(CLI::Range(least, most).description(""))
      ->type_name(fmt::format("{}..{}", least, most))
      ->capture_default_str();
}

/// Adds an option for a size such as "64M", from 1 to `largest` bytes.
CLI::Option* add_bytes(CLI::App& app, const std::string& name, std::uint64_t& target, std::uint64_t largest,
                       const std::string& description);

/// Adds an option for a time in seconds, or with a unit ("0.5", "500ms", "2min"), from `least` to a day.
CLI::Option* add_seconds(CLI::App& app, const std::string& name, Duration& target, double least,
                         const std::string& description);

/// Adds --set NAME=VALUE, which may be repeated, and --fault PLAN.
void add_engine_settings(CLI::App& app, std::vector<std::pair<std::string, std::string>>& target);

/// Prints the error as one line on standard error. Returns the exit code: usage for malformed input, else failed.
int report_error(const Error& error);
/// Returns the error that ends a server whose host engine has ended.
Error lost_host_engine();
/// Reports a command line that cannot be parsed; also handles --help and --version. Returns the exit code.
int report_parse(const CLI::App& app, const CLI::ParseError& error);

}  // namespace fairlead::tools
