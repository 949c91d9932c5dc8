#include "tools/base/command_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/quantity.hpp"
#include "base/shown.hpp"
#include "tools/base/byte_size.hpp"
#include "tools/base/exit_code.hpp"

namespace fairlead::tools {
namespace {

constexpr double kSecondsMax = 86400;

}  // namespace

void want_subcommand(CLI::App& app) {
  want_subcommand_or(app, [] { return false; });
}

void want_subcommand_or(CLI::App& app, std::function<bool()> alone) {
  app.require_subcommand(0, 1);
  app.final_callback([&app, alone = std::move(alone)] {
    if (!app.get_subcommands().empty() || alone()) return;
    std::string names;
    for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; })) {
      if (!each->get_group().empty()) names += (names.empty() ? "" : ", ") + each->get_name();
    }
    throw CLI::RequiredError(fmt::format("one of {}", names));
  });
}

CLI::Option* add_bytes(CLI::App& app, const std::string& name, std::uint64_t& target, std::uint64_t largest,
                       const std::string& description) {
  const auto to_number = [&target, name, largest](const std::string& text) {
    const auto size = parse_byte_size(text, largest);
    if (!size) throw CLI::ValidationError(name, size.error().message);
    target = *size;
  };
  return app.add_option_function<std::string>(name, to_number, description)
      ->type_name("SIZE")
      ->default_str(target == 0 ? "" : byte_size_text(target));
}

CLI::Option* add_seconds(CLI::App& app, const std::string& name, Duration& target, double least,
                         const std::string& description) {
  const auto to_duration = [&target, name, least](const std::string& text) {
    const auto nanoseconds = base::parse_quantity(base::has_unit(text) ? text : text + "s", "ns");
    const double seconds = static_cast<double>(nanoseconds.value_or(0)) / 1e9;
    if (!nanoseconds || seconds < least || seconds > kSecondsMax) {
      throw CLI::ValidationError(name, fmt::format("'{}': want {} to {} seconds, as 5, 0.5, 500ms or 2min",
                                                   base::shown(text), least, kSecondsMax));
    }
    target = Duration{static_cast<std::int64_t>(*nanoseconds)};
  };
  return app.add_option_function<std::string>(name, to_duration, description)
      ->type_name("SECONDS")
      ->default_str(fmt::format("{}", std::chrono::duration<double>(target).count()));
}

void add_engine_settings(CLI::App& app, std::vector<std::pair<std::string, std::string>>& target) {
  const auto split = [&target](const std::vector<std::string>& settings) {
    for (const std::string& setting : settings) {
      const std::size_t equals = setting.find('=');
      if (equals == setting.npos) {
        throw CLI::ValidationError("--set", fmt::format("'{}' is not NAME=VALUE", setting));
      }
      target.emplace_back(setting.substr(0, equals), setting.substr(equals + 1));
    }
  };
  app.add_option_function<std::vector<std::string>>("--set", split, "an engine setting (fairlead options lists them)")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  const auto add_fault = [&target](const std::string& plan) { target.emplace_back("fault", plan); };
  app.add_option_function<std::string>(
         "--fault", add_fault,
         "faults in the datagrams that are sent, e.g. drop=1%,reorder=5:64,duplicate=1%,delay=1ms,corrupt=0.1%,seed=7")
      ->type_name("PLAN");
}

int report_parse(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(error);  // --help, --version
  std::string command = app.get_name();
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    command += ' ' + at->get_name();
  }
  // The library's reason may have several lines and begins with a capital letter.
  std::string reason = error.what();
  std::ranges::replace(reason, '\n', ' ');
  if (reason.size() > 1 && std::islower(static_cast<unsigned char>(reason[1])) != 0) {
    reason[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(reason[0])));
  }
  fmt::print(stderr, "fairlead: {}: `{} --help` lists what there is\n", reason, command);
  return kExitUsage;
}

Error lost_host_engine() {
  return {Status::restarted, 0, "the host engine has ended: start fairleadd again, and then this"};
}

int report_error(const Error& error) {
  fmt::print(stderr, "fairlead: {}\n", error.message);
  return error.status == Status::invalid ? kExitUsage : kExitFailed;
}

}  // namespace fairlead::tools
