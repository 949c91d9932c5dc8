#pragma once
// A counted reference to the address of a transfer machine (docs/net.md, "End points").

#include <cstdint>
#include <string_view>
#include <utility>

namespace fairlead::net {

class EndPointTable;
struct EndPointState;

/// Within one transfer machine, all references to one address share one object, so equal addresses compare equal.
/// Copying adds a reference and destroying releases it; neither locks. Destroy all references to a transfer machine's
/// end points before its close(). Thread rules: as std::shared_ptr (different threads may use different copies).
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

  /// "10.0.0.5@udp:20480:34:1"; empty if this refers to nothing. Valid as long as any reference exists.
  std::string_view address() const noexcept;

  explicit operator bool() const noexcept { return state_ != nullptr; }
  bool operator==(const EndPoint&) const noexcept = default;

 private:
  friend struct EndPointState;
  void release() noexcept;
  explicit EndPoint(EndPointState* state) noexcept : state_(state) {}  // takes over one reference

  EndPointState* state_ = nullptr;
};

/// The destination of a message. It names an end point without holding a reference, so a send need not count
/// references. An EndPoint converts to it implicitly. A Destination may outlive its end point: add() then returns
/// `invalid`. Thread rules: as an int.
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
