#pragma once
// One object of a scenario file during parsing. Fields are read by name. An error names its place and a remedy. Only
// the first error is kept; later reads have no effect.

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
  /// `where` appears in messages, for example "faults[2]". All sections of a file share `error`.
  ScenarioSection(const nlohmann::json& value, std::string where, std::optional<Error>& error);

  void read(std::string_view key, std::string& out);
  void read(std::string_view key, bool& out);
  void read(std::string_view key, base::Duration& out);
  void read_share(std::string_view key, double& out);
  void read_number(std::string_view key, double& out);
  void read_bytes(std::string_view key, std::uint64_t& out);
  void read_rate(std::string_view key, std::uint64_t& out);
  /// Reads "64" or "64..4096".
  void read_range(std::string_view key, std::uint64_t& low, std::uint64_t& high);
  /// Reads a host number below `hosts`, or "each" if that is allowed.
  void read_host(std::string_view key, std::uint32_t& out, std::uint32_t hosts, bool can_be_each);
  template <std::unsigned_integral T>
  void read(std::string_view key, T& out, std::uint64_t low, std::uint64_t high) {
    out = static_cast<T>(read_integer(key, out, low, high));
  }
  /// Reads one word of a list. Returns its index.
  std::size_t read_word(std::string_view key, const std::vector<std::string_view>& words, std::size_t otherwise);
  std::vector<std::string> read_words(std::string_view key);

  /// Calls `read` with the object at `key`, if there is one; each() calls it with every object of a list.
  void object(std::string_view key, const std::function<void(ScenarioSection&)>& read);
  void each(std::string_view key, const std::function<void(ScenarioSection&)>& read);
  /// Calls `read` with each key and its value as text.
  void each_pair(const std::function<void(std::string_view, const std::string&)>& read);

  bool has(std::string_view key) const { return value_.is_object() && value_.contains(key); }
  void fail(std::string_view key, std::string_view what);
  /// Call after the last field: any other key is an error.
  void finish();

 private:
  const nlohmann::json* find(std::string_view key);
  std::uint64_t read_integer(std::string_view key, std::uint64_t otherwise, std::uint64_t low, std::uint64_t high);
  /// Returns a string, or a number as written.
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
