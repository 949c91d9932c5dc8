// Parses a command line of `fairlead`, one word per line. The parser must refuse each with a reason, because the last
// word is an unknown option. Sizes and addresses are parsed completely or refused.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ensure.hpp"
#include "tools/base/address.hpp"
#include "tools/base/byte_size.hpp"
#include "tools/base/command_line.hpp"

namespace {

using namespace fairlead;

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty() && words.size() < 64) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    words.emplace_back(text.substr(0, end));
    std::erase(words.back(), '\0');  // words of a command line contain none
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

void parse(std::vector<std::string> words) {
  CLI::App app("fairlead");
  int exit_code = -1;
  tools::add_bulkping(app, exit_code);
  tools::add_perf(app, exit_code);
  tools::add_explain(app, exit_code);
  tools::add_options(app, exit_code);
  tools::want_subcommand(app);
  std::erase(words, "--");                               // after it, all words are positional
  words.insert(words.end(), {"--no-such", "--option"});  // the first may become the value of an option before it
  std::vector<const char*> pointers{"fairlead"};
  for (const std::string& word : words) pointers.push_back(word.c_str());
  try {
    app.parse(static_cast<int>(pointers.size()), pointers.data());
    ENSURE(false, "a command line with an option that there is not was taken");
  } catch (const CLI::ParseError& error) {
    const bool is_help = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success);
    ENSURE(is_help || std::string_view(error.what()) != "", "refused without a reason");
  }
  ENSURE(exit_code == -1, "a subcommand was run");
}

void read_values(std::string_view text) {
  constexpr std::uint64_t kLargest = 1ULL << 40;
  if (const auto bytes = tools::parse_byte_size(text, kLargest)) {
    ENSURE(*bytes >= 1 && *bytes <= kLargest, "{} bytes", *bytes);
    ENSURE(tools::parse_byte_size(tools::byte_size_text(*bytes), kLargest) == *bytes, "{} bytes", *bytes);
  }
  if (const auto sizes = tools::parse_byte_sizes(text, kLargest))
    ENSURE(!sizes->empty() && sizes->size() <= 64, "{} sizes", sizes->size());
  if (const auto address = tools::complete_address(text, {})) {
    const auto again = tools::complete_address(*address, {});
    ENSURE(again && *again == *address, "{} is not complete", *address);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_values(text);
  parse(words_of(text));
  return 0;
}
