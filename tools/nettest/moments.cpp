#include "tools/nettest/moments.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace fairlead::tools {

void Moments::record(Duration time) noexcept {
  const std::int64_t length = std::max<std::int64_t>(time.count(), 0);
  ++count_;
  least_ = std::min(least_, length);
  greatest_ = std::max(greatest_, length);
  sum_ += static_cast<Wide>(length);
  squares_ += static_cast<Wide>(length) * static_cast<Wide>(length);
}

Moments& Moments::operator+=(const Moments& other) noexcept {
  count_ += other.count_;
  least_ = std::min(least_, other.least_);
  greatest_ = std::max(greatest_, other.greatest_);
  sum_ += other.sum_;
  squares_ += other.squares_;
  return *this;
}

double Moments::mean_ns() const noexcept {
  return count_ == 0 ? 0 : static_cast<double>(static_cast<long double>(sum_) / static_cast<long double>(count_));
}

double Moments::deviation_ns() const noexcept {
  if (count_ == 0) return 0;
  const auto count = static_cast<long double>(count_);
  const long double mean = static_cast<long double>(sum_) / count;
  const long double variance = static_cast<long double>(squares_) / count - mean * mean;
  return static_cast<double>(std::sqrt(std::max(variance, 0.0L)));
}

void to_json(nlohmann::json& json, const Moments& moments) {
  const auto high = [](Moments::Wide value) { return static_cast<std::uint64_t>(value >> 64); };
  const auto low = [](Moments::Wide value) { return static_cast<std::uint64_t>(value); };
  json = {moments.count_,    moments.least_,         moments.greatest_,    high(moments.sum_),
          low(moments.sum_), high(moments.squares_), low(moments.squares_)};
}

void from_json(const nlohmann::json& json, Moments& moments) {
  const auto wide = [&](std::size_t high) {
    return static_cast<Moments::Wide>(json.at(high).get<std::uint64_t>()) << 64 |
           json.at(high + 1).get<std::uint64_t>();
  };
  json.at(0).get_to(moments.count_);
  json.at(1).get_to(moments.least_);
  json.at(2).get_to(moments.greatest_);
  moments.sum_ = wide(3);
  moments.squares_ = wide(5);
}

}  // namespace fairlead::tools
