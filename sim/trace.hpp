#pragma once
// Records everything that happens in a run, as a hash (equal for equal seeds) and optionally as text.

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <utility>

#include "base/time.hpp"
#include "sim/quantity.hpp"

namespace fairlead::sim {

/// The time at which every world begins; texts count from it.
inline constexpr base::Instant kBegin{std::chrono::seconds(1)};

class Trace {
 public:
  /// `out` may be null: then only the hash is kept.
  explicit Trace(std::FILE* out) : out_(out) {}

  /// Adds one event, as numbers that distinguish it from any other.
  void add(base::Instant now, std::initializer_list<std::uint64_t> numbers) {
    mix(static_cast<std::uint64_t>(now.time_since_epoch().count()));
    for (const std::uint64_t number : numbers) mix(number);
    ++events_;
  }

  template <typename... Arguments>
  void say(base::Instant now, fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    if (out_ == nullptr) [[likely]]
      return;
    const std::string line = fmt::format(text, std::forward<Arguments>(arguments)...);
    fmt::print(out_, "{:>16}  {}\n", to_text(now - kBegin), line);
  }

  std::uint64_t hash() const { return hash_; }
  std::uint64_t events() const { return events_; }
  bool is_printing() const { return out_ != nullptr; }

 private:
  void mix(std::uint64_t number) {
    hash_ = (hash_ ^ number) * 0x9fb21c651e98df25;
    hash_ ^= hash_ >> 32;
  }

  std::FILE* out_;
  std::uint64_t hash_ = 0x51'7cc1b727220a95;
  std::uint64_t events_ = 0;
};

}  // namespace fairlead::sim
