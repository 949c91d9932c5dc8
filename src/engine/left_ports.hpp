#pragma once
// Numbers of closed ports whose owners have left or died. The latest kMost are kept, so the engine can tell late
// senders the reason.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <fairlead/error.hpp>

namespace fairlead::engine {

class LeftPorts {
 public:
  static constexpr std::size_t kMost = 1024;

  struct Port {
    std::uint32_t number = ~0U;  // no port has this number
    Status why = Status::ok;
  };

  void add(std::uint32_t number, Status why) {
    remove(number);
    ports_[next_] = {number, why};
    next_ = (next_ + 1) % kMost;
  }
  /// The number belongs to a new port.
  void remove(std::uint32_t number) {
    const auto found = std::ranges::find(ports_, number, &Port::number);
    if (found != ports_.end()) *found = {};
  }
  /// Returns why the port is gone; ok if it is not known here.
  Status why(std::uint32_t number) const {
    const auto found = std::ranges::find(ports_, number, &Port::number);
    return found != ports_.end() ? found->why : Status::ok;
  }

  /// Returns the ports that are kept, the earliest first. add() restores them.
  std::vector<Port> save() const {
    std::vector<Port> kept;
    for (std::size_t i = 0; i < kMost; ++i)
      if (const Port& port = ports_[(next_ + i) % kMost]; port.why != Status::ok) kept.push_back(port);
    return kept;
  }

 private:
  std::array<Port, kMost> ports_{};
  std::size_t next_ = 0;
};

}  // namespace fairlead::engine
