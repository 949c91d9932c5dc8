#pragma once
// Two networks of our own, joined by a wire with an MTU of 1500 that cuts trains into packets and loses some of them.
//
//     this process                                          far
//     fb0 10.77.0.1  cuts  ->  fl0  loses  ============  fl1  <-  fb1 10.77.0.2
//
// The bridges are there because the kernel cuts below a device that cannot take trains, and only what is below that
// device meets single packets: a rule above it loses forty at once. The receiving device merges again (GRO), as a
// network card does. All of it goes with the processes that are in it.

#include <fairlead/error.hpp>

#include <cstdint>
#include <string_view>

#include "base/file_descriptor.hpp"

namespace fairlead::tools {

class LossyWire {
 public:
  enum class Unit : std::uint8_t { packets, trains };  // what is lost at once; trains as the receiver merged them
  struct Tally {
    std::uint64_t passed = 0;  // units that came by, lost ones included
    std::uint64_t lost = 0;
  };

  static constexpr std::string_view kNearAddress = "10.77.0.1", kFarAddress = "10.77.0.2";

  /// Moves this process, which must have one thread only, into the near network for good.
  static Result<LossyWire> lay();

  /// To be entered with base::NetworkVisit.
  int far_network() const { return far_.get(); }

  /// From now on loses this part of the IP traffic, 0 to 1, at random in both directions, and counts from zero.
  Result<> lose(double part, Unit unit);
  /// Since lose().
  Result<Tally> tally() const;

 private:
  explicit LossyWire(base::FileDescriptor far) : far_(std::move(far)) {}

  base::FileDescriptor far_;
};

}  // namespace fairlead::tools
