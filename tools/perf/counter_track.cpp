#include "tools/perf/counter_track.hpp"

#include <unistd.h>

#include <chrono>

#include "tools/top/engines.hpp"

namespace fairlead::tools {

void CounterTrack::look() {
  if (looks_.size() == kLooksMax) return;
  const auto seen = look_at_engines(::getpid());
  if (!seen || seen->engines.empty()) return;
  CounterLook look{.at_s = std::chrono::duration<double>(now() - begin_).count(), .values = {}};
  for (const observe::StatsCounter& counter : seen->engines.front().view.counters)
    look.values.emplace_back(observe::text_of(counter.name), counter.value);
  looks_.push_back(std::move(look));
}

}  // namespace fairlead::tools
