#pragma once
// How the measuring side tells the other one what to do: commands and answers over a pair of sockets, one packet each.
// Between commands the far side sleeps in receive(), so that it disturbs nobody's measurement.

#include <fairlead/error.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace fairlead::tools {

enum class PerfRole : std::uint8_t {
  echo,      // sends every message back
  take_put,  // exposes buffers and hands out their descriptors
  take,      // takes messages
};

struct PerfCommand {
  PerfRole role = PerfRole::echo;
  std::uint64_t size = 0;
  std::uint32_t in_flight = 0;
  bool is_checked = false;              // as of perf_stamp.hpp
  bool is_loan = false;                 // of echo
  std::array<char, 96> near_address{};  // zero-terminated

  void set_near_address(std::string_view address);
};

/// The far side's answer when it has stopped.
struct PerfOutcome {
  std::uint64_t messages = 0;  // or transfers
  std::uint64_t bytes = 0;
  std::uint64_t dropped = 0;  // messages that found no receive buffer
  std::uint64_t failures = 0;
  std::uint64_t corrupt = 0;  // of checked ones: damaged, stale or repeated
};

/// One end of the pair; closing it ends the far side.
class PerfControl {
 public:
  explicit PerfControl(int descriptor) : descriptor_(descriptor) {}
  PerfControl(PerfControl&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  PerfControl& operator=(PerfControl&&) = delete;
  ~PerfControl();

  static Result<std::pair<PerfControl, PerfControl>> make_pair();

  int descriptor() const { return descriptor_; }

  template <typename Packet>
  bool send(const Packet& packet) {
    return send_bytes(&packet, sizeof packet);
  }
  /// Waits for one; nullopt if the other end is gone.
  template <typename Packet>
  std::optional<Packet> receive() {
    Packet packet;
    return receive_bytes(&packet, sizeof packet) ? std::optional(packet) : std::nullopt;
  }
  /// Whether receive() would not wait. A system call.
  bool is_readable() const;

 private:
  bool send_bytes(const void* bytes, std::size_t size);
  bool receive_bytes(void* bytes, std::size_t size);

  int descriptor_;
};

}  // namespace fairlead::tools
