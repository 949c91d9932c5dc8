#pragma once
// The control channel between the two sides of a measurement: JSON objects, one per line, over a socket pair or TCP.
// Between messages the far side sleeps in receive(), so that it does not disturb a measurement. protocol.hpp defines
// and checks the messages.

#include <fairlead/error.hpp>
#include <fairlead/time.hpp>

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>

#include "base/file_descriptor.hpp"

namespace fairlead::tools {

/// One end of the channel. Closing it ends the far side.
class PerfControl {
 public:
  static constexpr std::size_t kLineMax = 4096;  // bytes of a message
  static constexpr Duration kForEver = Duration::max();

  /// `socket` is connected, of type SOCK_STREAM and blocking.
  explicit PerfControl(base::FileDescriptor socket) : socket_(std::move(socket)) {}

  static Result<std::pair<PerfControl, PerfControl>> make_pair();

  int descriptor() const { return socket_.get(); }

  /// Returns false if the other end is gone, or has left the kernel's buffer full. Never blocks.
  bool send(const nlohmann::json& message);
  /// Waits for a message. Errors: `silent` if none came in time; `unreachable` if the other end is gone; `invalid` if
  /// it sent something other than a JSON object of at most kLineMax bytes. After an error the channel is of no more
  /// use.
  Result<nlohmann::json> receive(Duration at_most = kForEver);
  /// Returns whether receive() would not wait. Makes a system call.
  bool is_readable() const;

 private:
  bool wait_until_readable(Instant deadline) const;

  base::FileDescriptor socket_;
  std::string taken_;  // bytes of messages that were not received yet
};

}  // namespace fairlead::tools
