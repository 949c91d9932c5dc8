#pragma once
// Two network namespaces, joined by a wire with an MTU of 1500 that cuts trains into packets and loses some of them.
//
//     this process                                          far
//     fb0 10.77.0.1  cuts  ->  fl0  loses  ============  fl1  <-  fb1 10.77.0.2
//
// The kernel segments trains above a device that does not support them, so only a filter below that device sees single
// packets. A filter above it would drop forty at once. The bridges provide such a device. The receiving device merges
// packets again (GRO), as a network card does. All of it disappears with the processes inside.

#include <fairlead/error.hpp>

#include <cstdint>
#include <string_view>

#include "base/file_descriptor.hpp"

namespace fairlead::tools {

class LossyWire {
 public:
  enum class Unit : std::uint8_t { packets, trains };  // what one loss drops; trains as the receiver merged them
  struct Tally {
    std::uint64_t passed = 0;  // units seen, including lost ones
    std::uint64_t lost = 0;
  };

  static constexpr std::string_view kNearAddress = "10.77.0.1", kFarAddress = "10.77.0.2";

  /// Moves this process permanently into the near namespace. The process must have only one thread.
  static Result<LossyWire> lay();

  /// Returns the far namespace, for base::NetworkVisit.
  int far_network() const { return far_.get(); }

  /// From now on, loses this fraction (0 to 1) of the IP traffic, at random in both directions. Resets the tally.
  Result<> lose(double part, Unit unit);
  /// Returns the counts since lose().
  Result<Tally> tally() const;

 private:
  explicit LossyWire(base::FileDescriptor far) : far_(std::move(far)) {}

  base::FileDescriptor far_;
};

}  // namespace fairlead::tools
