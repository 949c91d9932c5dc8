#pragma once
// Count, least, greatest, mean and deviation of lengths of time. Sums are kept in full, so what several have counted
// adds up to exactly what one would have.

#include <fairlead/time.hpp>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

namespace fairlead::tools {

class Moments {
 public:
  /// A negative time counts as none.
  void record(Duration time) noexcept;
  Moments& operator+=(const Moments& other) noexcept;
  bool operator==(const Moments&) const = default;

  std::uint64_t count() const noexcept { return count_; }
  /// All zero if nothing was recorded.
  Duration least() const noexcept { return Duration(count_ == 0 ? 0 : least_); }
  Duration greatest() const noexcept { return Duration(greatest_); }
  double mean_ns() const noexcept;
  /// Of the whole, not of a sample.
  double deviation_ns() const noexcept;

 private:
  friend void to_json(nlohmann::json& json, const Moments& moments);
  friend void from_json(const nlohmann::json& json, Moments& moments);
  __extension__ using Wide = unsigned __int128;

  std::uint64_t count_ = 0;
  std::int64_t least_ = Duration::max().count();
  std::int64_t greatest_ = 0;
  Wide sum_ = 0, squares_ = 0;
};

}  // namespace fairlead::tools
