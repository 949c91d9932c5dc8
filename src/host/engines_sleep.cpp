#include "host/engines_sleep.hpp"

#include <algorithm>

namespace fairlead::host {

bool EnginesSleep::sleep(const ServedEngines& engines, int calls, base::Instant deadline) {
  lying_.clear();
  woken_.assign(1, {calls, POLLIN, 0});
  for (const auto& [address, engine] : engines) {
    embedded::Driver& driver = engine->core->driver();
    if (!driver.lie_down(deadline)) continue;
    lying_.push_back(&driver);
    for (const int descriptor : driver.descriptors()) woken_.push_back({descriptor, POLLIN, 0});
  }
  woken_.push_back({});
  timer_.sleep(woken_, deadline);
  for (embedded::Driver* driver : lying_) driver->get_up();
  const auto is_readable = [](const pollfd& one) { return one.revents != 0; };
  return woken_.front().revents == 0 || std::any_of(woken_.begin() + 1, woken_.end(), is_readable);
}

}  // namespace fairlead::host
