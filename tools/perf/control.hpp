#pragma once
// Commands and answers between the two sides of a measurement, one packet each, over a socket pair. Between commands
// the far side sleeps in receive(), so that it does not disturb a measurement.

#include <fairlead/error.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace fairlead::tools {

enum class PerfRole : std::uint8_t {
  echo,      // returns every message
  take_put,  // exposes buffers and sends their descriptors
  take,      // receives messages
};

struct PerfCommand {
  PerfRole role = PerfRole::echo;
  std::uint64_t size = 0;
  std::uint32_t in_flight = 0;
  bool is_checked = false;              // see stamp.hpp
  bool is_loan = false;                 // of echo
  std::array<char, 96> near_address{};  // 0-terminated

  void set_near_address(std::string_view address);
};

/// The far side's answer when it has stopped.
struct PerfOutcome {
  std::uint64_t messages = 0;  // or transfers
  std::uint64_t bytes = 0;
  std::uint64_t dropped = 0;  // messages that found no receive buffer
  std::uint64_t failures = 0;
  std::uint64_t corrupt = 0;  // of checked messages: corrupted, stale or repeated
};

/// One end of the pair. Closing it ends the far side.
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
  /// Waits for a packet. Returns nullopt if the other end is gone.
  template <typename Packet>
  std::optional<Packet> receive() {
    Packet packet;
    return receive_bytes(&packet, sizeof packet) ? std::optional(packet) : std::nullopt;
  }
  /// Returns whether receive() would not wait. Makes a system call.
  bool is_readable() const;

 private:
  bool send_bytes(const void* bytes, std::size_t size);
  bool receive_bytes(void* bytes, std::size_t size);

  int descriptor_;
};

}  // namespace fairlead::tools
