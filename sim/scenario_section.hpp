#pragma once
// One object of a scenario file while it is read: fields by name, each told wrong with its place and a remedy. The
// first mistake is kept; what follows it reads nothing.

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <fairlead/error.hpp>

#include "base/time.hpp"

namespace fairlead::sim {

class ScenarioSection {
 public:
  /// `where`: "faults[2]" in messages. `error` is shared by all sections of a file.
  ScenarioSection(const nlohmann::json& value, std::string where, std::optional<Error>& error);

  void read(std::string_view key, std::string& out);
  void read(std::string_view key, bool& out);
  void read(std::string_view key, base::Duration& out);
  void read_share(std::string_view key, double& out);
  void read_number(std::string_view key, double& out);
  void read_bytes(std::string_view key, std::uint64_t& out);
  void read_rate(std::string_view key, std::uint64_t& out);
  /// "64" or "64..4096".
  void read_range(std::string_view key, std::uint64_t& low, std::uint64_t& high);
  /// A host number below `hosts`, or "each" where that is allowed.
  void read_host(std::string_view key, std::uint32_t& out, std::uint32_t hosts, bool can_be_each);
  template <std::unsigned_integral T>
  void read(std::string_view key, T& out, std::uint64_t low, std::uint64_t high) {
    out = static_cast<T>(read_integer(key, out, low, high));
  }
  /// One word of a list; its place in it.
  std::size_t read_word(std::string_view key, const std::vector<std::string_view>& words, std::size_t otherwise);
  std::vector<std::string> read_words(std::string_view key);

  /// Calls with the object below `key`, if there is one; with each object of the list.
  void object(std::string_view key, const std::function<void(ScenarioSection&)>& read);
  void each(std::string_view key, const std::function<void(ScenarioSection&)>& read);
  /// Calls with each key and value as text.
  void each_pair(const std::function<void(std::string_view, const std::string&)>& read);

  bool has(std::string_view key) const { return value_.is_object() && value_.contains(key); }
  void fail(std::string_view key, std::string_view what);
  /// After the last field: any other key is a mistake.
  void finish();

 private:
  const nlohmann::json* find(std::string_view key);
  std::uint64_t read_integer(std::string_view key, std::uint64_t otherwise, std::uint64_t low, std::uint64_t high);
  /// A text, or a number as it is written.
  std::optional<std::string> text(std::string_view key);
  template <typename Out, typename Parse>
  void parse(std::string_view key, Out& out, Parse&& parse_text);
  std::string place(std::string_view key) const;

  const nlohmann::json& value_;
  std::string where_;
  std::optional<Error>& error_;
  std::vector<std::string> known_;
};

}  // namespace fairlead::sim
