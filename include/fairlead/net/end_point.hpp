#pragma once
// A counted reference to the address of a transfer machine (docs/net.md, "End points").

#include <cstdint>
#include <string_view>
#include <utility>

namespace fairlead::net {

class EndPointTable;
struct EndPointState;

/// Within one transfer machine there is at most one object per address while anybody refers to it, so equal addresses
/// compare equal. Copying takes a further reference, destroying gives it back; neither locks. All references of a
/// transfer machine's end points have to be gone before its close().
/// Thread rules: as of std::shared_ptr (different copies may be used by different threads).
class EndPoint {
 public:
  /// Refers to nothing.
  EndPoint() noexcept = default;
  EndPoint(const EndPoint& other) noexcept;
  EndPoint(EndPoint&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  EndPoint& operator=(EndPoint other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~EndPoint() {
    if (state_ != nullptr) release();
  }

  /// "10.0.0.5@udp:20480:34:1"; empty if this refers to nothing. Lives as long as a reference does.
  std::string_view address() const noexcept;

  explicit operator bool() const noexcept { return state_ != nullptr; }
  bool operator==(const EndPoint&) const noexcept = default;

 private:
  friend struct EndPointState;
  void release() noexcept;
  explicit EndPoint(EndPointState* state) noexcept : state_(state) {}  // takes over one reference

  EndPointState* state_ = nullptr;
};

/// Where a message goes: names an end point without a reference to it, so that a send counts none. An EndPoint becomes
/// one by itself. It may outlive its end point: add() answers `invalid` if the transfer machine has none of that name.
/// Thread rules: as of an int.
class Destination {
 public:
  /// Names nothing.
  Destination() noexcept = default;
  Destination(const EndPoint& end_point) noexcept;

  bool operator==(const Destination&) const noexcept = default;

 private:
  friend class EndPointTable;

  const EndPointTable* table_ = nullptr;  // only compared
  std::uint32_t place_ = 0, serial_ = 0;
};

}  // namespace fairlead::net
