#pragma once
// Samples the counters of this process's engine from outside, as `fairlead top` does.

#include <fairlead/time.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tools/base/now.hpp"

namespace fairlead::tools {

struct CounterLook {
  double at_s = 0;  // since the track began
  std::vector<std::pair<std::string, std::uint64_t>> values;
};

class CounterTrack {
 public:
  static constexpr std::size_t kLooksMax = 4096;

  /// Takes a sample, unless the engine cannot be read at the moment or kLooksMax samples are taken.
  void look();
  const std::vector<CounterLook>& looks() const { return looks_; }

 private:
  Instant begin_ = now();
  std::vector<CounterLook> looks_;
};

}  // namespace fairlead::tools
