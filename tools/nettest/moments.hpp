#pragma once
// Count, minimum, maximum, mean and standard deviation of durations. Sums are exact, so adding several objects gives
// exactly the result of a single one.

#include <fairlead/time.hpp>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

namespace fairlead::tools {

class Moments {
 public:
  /// Records a duration. A negative one counts as 0.
  void record(Duration time) noexcept;
  Moments& operator+=(const Moments& other) noexcept;
  bool operator==(const Moments&) const = default;

  std::uint64_t count() const noexcept { return count_; }
  /// All results are 0 if nothing was recorded.
  Duration least() const noexcept { return Duration(count_ == 0 ? 0 : least_); }
  Duration greatest() const noexcept { return Duration(greatest_); }
  double mean_ns() const noexcept;
  /// Standard deviation of the population, not of a sample.
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
