#pragma once
// How many bytes whoever has the engine's lock copies by himself, before others have it. What goes beyond that, also of
// one request, waits for the next turn.

#include <algorithm>
#include <cstdint>

namespace fairlead::qp {

class CopyTurn {
 public:
  static constexpr std::uint64_t kBytes = 4ULL << 20;

  void begin() { copied_ = 0; }
  bool is_over() const { return copied_ >= kBytes; }
  std::uint64_t left() const { return kBytes - std::min(copied_, kBytes); }
  void spend(std::uint64_t bytes) { copied_ += bytes; }

 private:
  std::uint64_t copied_ = 0;
};

}  // namespace fairlead::qp
