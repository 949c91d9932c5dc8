#pragma once
// Reads a fuzz input as a sequence of numbers that control a test.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace fairlead::fuzz {

/// Returns zeros after the input's end.
class Script {
 public:
  Script(const std::uint8_t* data, std::size_t size) : rest_(data, size) {}
  bool is_over() const { return rest_.empty(); }
  template <typename Number>
  Number take() {
    Number number = 0;
    const std::size_t length = std::min(sizeof number, rest_.size());
    if (length != 0) std::memcpy(&number, rest_.data(), length);
    rest_ = rest_.subspan(length);
    return number;
  }
  std::uint8_t byte() { return take<std::uint8_t>(); }
  /// Mostly a number close to `known`, sometimes any.
  std::uint64_t near(std::uint64_t known) {
    const std::uint8_t how = byte();
    return how < 200 ? known + static_cast<std::uint64_t>(static_cast<std::int64_t>(how % 8) - (how < 128 ? 0 : 4))
                     : take<std::uint64_t>();
  }

 private:
  std::span<const std::uint8_t> rest_;
};

/// Lets a `World` act by the input, with a bounded number of steps, then finishes it. If the world can encrypt, it does
/// so when the highest bit of the input's last byte is set.
template <typename World>
int play(const std::uint8_t* data, std::size_t size, int actions_max) {
  Script script(data, size);
  World world = [&] {
    if constexpr (std::is_constructible_v<World, bool>) {
      return World(size != 0 && (data[size - 1] & 0x80) != 0);
    } else {
      return World();
    }
  }();
  for (int actions = 0; actions < actions_max && !script.is_over(); ++actions) world.act(script);
  world.finish();
  return 0;
}

}  // namespace fairlead::fuzz
