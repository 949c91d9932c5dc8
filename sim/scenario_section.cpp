#include "sim/scenario_section.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "sim/quantity.hpp"
#include "sim/scenario.hpp"

namespace fairlead::sim {

using nlohmann::json;

ScenarioSection::ScenarioSection(const json& value, std::string where, std::optional<Error>& error)
    : value_(value), where_(std::move(where)), error_(error) {
  if (!value.is_object()) fail("", "want an object: { \"key\": value }");
}

std::string ScenarioSection::place(std::string_view key) const {
  if (where_.empty()) return std::string(key);
  return key.empty() ? where_ : fmt::format("{}.{}", where_, key);
}

void ScenarioSection::fail(std::string_view key, std::string_view what) {
  if (!error_) error_ = Error{Status::invalid, 0, fmt::format("{}: {}", place(key), what)};
}

const json* ScenarioSection::find(std::string_view key) {
  known_.emplace_back(key);
  if (error_ || !value_.is_object()) return nullptr;
  const auto found = value_.find(key);
  return found == value_.end() ? nullptr : &*found;
}

std::optional<std::string> ScenarioSection::text(std::string_view key) {
  const json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  if (value->is_number()) return value->dump();
  fail(key, "want a text or a number");
  return std::nullopt;
}

template <typename Out, typename Parse>
void ScenarioSection::parse(std::string_view key, Out& out, Parse&& parse_text) {
  const auto written = text(key);
  if (!written) return;
  auto parsed = parse_text(*written);
  if (parsed) {
    out = *parsed;
  } else {
    fail(key, parsed.error().message);
  }
}

void ScenarioSection::read(std::string_view key, std::string& out) {
  if (auto written = text(key)) out = *written;
}

void ScenarioSection::read(std::string_view key, bool& out) {
  const json* value = find(key);
  if (value == nullptr) return;
  if (!value->is_boolean()) return fail(key, "want true or false");
  out = value->get<bool>();
}

void ScenarioSection::read(std::string_view key, base::Duration& out) {
  parse(key, out, parse_duration);
}
void ScenarioSection::read_share(std::string_view key, double& out) {
  parse(key, out, parse_share);
}
void ScenarioSection::read_bytes(std::string_view key, std::uint64_t& out) {
  parse(key, out, parse_bytes);
}
void ScenarioSection::read_rate(std::string_view key, std::uint64_t& out) {
  parse(key, out, parse_bytes_per_second);
}

void ScenarioSection::read_number(std::string_view key, double& out) {
  const json* value = find(key);
  if (value == nullptr) return;
  if (!value->is_number()) return fail(key, "want a number");
  out = value->get<double>();
}

void ScenarioSection::read_range(std::string_view key, std::uint64_t& low, std::uint64_t& high) {
  const auto written = text(key);
  if (!written) return;
  const std::size_t dots = written->find("..");
  const auto from = parse_bytes(written->substr(0, dots));
  const auto to = dots == std::string::npos ? from : parse_bytes(written->substr(dots + 2));
  if (!from || !to || *from > *to) return fail(key, fmt::format("'{}': want bytes like 64 or 0..1MiB", *written));
  low = *from;
  high = *to;
}

void ScenarioSection::read_host(std::string_view key, std::uint32_t& out, std::uint32_t hosts, bool can_be_each) {
  const auto written = text(key);
  if (!written) return;
  if (can_be_each && *written == "each") {
    out = kEveryHost;
    return;
  }
  std::uint32_t number = 0;
  const auto [end, code] = std::from_chars(written->data(), written->data() + written->size(), number);
  if (code != std::errc() || end != written->data() + written->size() || number >= hosts) {
    return fail(key,
                fmt::format("'{}' is no host: want 0 to {}{}", *written, hosts - 1, can_be_each ? " or \"each\"" : ""));
  }
  out = number;
}

std::uint64_t ScenarioSection::read_integer(std::string_view key, std::uint64_t otherwise, std::uint64_t low,
                                            std::uint64_t high) {
  const json* value = find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_number_unsigned() || value->get<std::uint64_t>() < low || value->get<std::uint64_t>() > high) {
    fail(key, fmt::format("{}: want a whole number from {} to {}", value->dump(), low, high));
    return otherwise;
  }
  return value->get<std::uint64_t>();
}

std::size_t ScenarioSection::read_word(std::string_view key, const std::vector<std::string_view>& words,
                                       std::size_t otherwise) {
  const auto written = text(key);
  if (!written) return otherwise;
  const auto found = std::ranges::find(words, *written);
  if (found == words.end()) {
    fail(key, fmt::format("'{}': want one of {}", *written, fmt::join(words, ", ")));
    return otherwise;
  }
  return static_cast<std::size_t>(found - words.begin());
}

std::vector<std::string> ScenarioSection::read_words(std::string_view key) {
  std::vector<std::string> words;
  const json* value = find(key);
  if (value == nullptr) return words;
  const bool is_list =
      value->is_array() && std::ranges::all_of(*value, [](const json& word) { return word.is_string(); });
  if (!is_list) {
    fail(key, "want a list of words: [\"ok\", \"silent\"]");
    return words;
  }
  return value->get<std::vector<std::string>>();
}

void ScenarioSection::object(std::string_view key, const std::function<void(ScenarioSection&)>& read) {
  const json* value = find(key);
  if (value == nullptr) return;
  ScenarioSection section(*value, place(key), error_);
  read(section);
  section.finish();
}

void ScenarioSection::each(std::string_view key, const std::function<void(ScenarioSection&)>& read) {
  const json* value = find(key);
  if (value == nullptr) return;
  if (!value->is_array()) return fail(key, "want a list: [ {...}, {...} ]");
  for (std::size_t index = 0; index < value->size(); ++index) {
    ScenarioSection section((*value)[index], fmt::format("{}[{}]", place(key), index), error_);
    read(section);
    section.finish();
  }
}

void ScenarioSection::each_pair(const std::function<void(std::string_view, const std::string&)>& read) {
  if (error_ || !value_.is_object()) return;
  for (const auto& [key, value] : value_.items()) {
    known_.push_back(key);
    read(key, value.is_string() ? value.get<std::string>() : value.dump());
  }
}

void ScenarioSection::finish() {
  if (error_ || !value_.is_object()) return;
  for (const auto& [key, value] : value_.items()) {
    if (std::ranges::find(known_, key) != known_.end()) continue;
    std::ranges::sort(known_);
    return fail(key, fmt::format("no such key: want one of {}", fmt::join(known_, ", ")));
  }
}

}  // namespace fairlead::sim
