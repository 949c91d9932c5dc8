// Sets an option by name, as on a command line or in the environment. Any text gives a value in the option's range, or
// an error of one printable line. The input is NAME=VALUE; a name that starts with FAIRLEAD_ is an environment
// variable. The input is also parsed as a settings file.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/ensure.hpp"
#include "engine/engine_options.hpp"

namespace {

using fairlead::engine::EngineOptions;
using fairlead::engine::Option;

void check_error(std::string_view message) {
  ENSURE(!message.empty() && std::ranges::all_of(message, [](char letter) { return letter >= ' ' && letter <= '~'; }),
         "an error of {} bytes that is not a printable line", message.size());
}

void check_values(const EngineOptions& options) {
  std::size_t i = 0;
  for (const fairlead::OptionRow& row : fairlead::option_table()) {
    const std::uint64_t value = options.get(static_cast<Option>(i++));
    ENSURE(value >= row.value_min && value <= row.value_max, "{} is {}", row.name, value);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t equals = std::min(text.find('='), text.size());
  const std::string name(text.substr(0, equals)), value(text.substr(std::min(equals + 1, text.size())));
  EngineOptions options;
  if (const auto set = options.set(name, value); !set) check_error(set.error().message);
  check_values(options);

  if (auto file = fairlead::base::SettingsFile::parse(text, "a.toml"); !file) {
    check_error(file.error().message);
  } else if (const auto of_file = EngineOptions::of(fairlead::base::Settings(std::move(*file))); !of_file) {
    check_error(of_file.error().message);
  } else {
    check_values(*of_file);
  }

  if (!name.starts_with("FAIRLEAD_") || name.contains('\0')) return 0;
  ::setenv(name.c_str(), value.c_str(), 1);
  const auto read = EngineOptions::from_environment();
  ::unsetenv(name.c_str());
  if (!read) {
    check_error(read.error().message);
    ENSURE(read.error().message.contains(name), "an error that does not name {}", name);
  } else {
    check_values(*read);
  }
  return 0;
}
