#pragma once
// One end of a measurement of active messages: an endpoint with two handlers, and counts.

#include <fairlead/am.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/perf/place.hpp"
#include "tools/perf/protocol.hpp"

namespace fairlead::tools {

enum class AmKind : std::uint8_t { brief, medium, large };  // short, medium, long

class AmEnd {
 public:
  /// `place` names the address and the engine's settings.
  static Result<std::unique_ptr<AmEnd>> open(const PerfPlace& place, const PerfPlan& plan);

  /// Returns the endpoint's name as text, for meet() of the other end.
  std::string at() const;
  Result<> meet(std::string_view other);

  Status send(AmKind kind, std::uint64_t size);
  void poll() { bundle_->poll(); }
  std::uint64_t replies() const { return replies_; }
  /// Returns whether a message came back.
  bool has_failed() const { return has_failed_; }
  bool is_idle() const { return endpoint_->outstanding() == 0; }

 private:
  AmEnd() = default;

  std::unique_ptr<am::Bundle> bundle_;
  am::Endpoint* endpoint_ = nullptr;
  std::vector<std::byte> memory_;
  std::uint64_t replies_ = 0;
  bool has_failed_ = false;
};

}  // namespace fairlead::tools
