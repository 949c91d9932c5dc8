#pragma once
// Invitations connect two programs that do not know each other's addresses. Each program sends the address of its
// transfer machine, and the descriptors of buffers that the other may use.
//
//   meet(machine, socket, ...)       over any connected stream socket, TCP or Unix: both ends call it
//   Invitation::to_text()            one line of text for a file, an environment variable or a person

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fairlead/error.hpp>
#include <fairlead/net/buffer.hpp>
#include <fairlead/net/descriptor.hpp>
#include <fairlead/net/end_point.hpp>
#include <fairlead/net/transfer_machine.hpp>
#include <fairlead/time.hpp>

namespace fairlead::net {

/// The address of a transfer machine, and descriptors of its buffers. Any holder of an invitation may use each buffer
/// once.
struct Invitation {
  std::string address;                         ///< of a transfer machine, without `*`
  std::vector<BufferDescriptor> exposed = {};  ///< of buffers in that machine's passive queues
  bool operator==(const Invitation&) const = default;

  static constexpr std::size_t kExposedMost = 256;
  /// Makes an invitation to a started machine and to buffers in its passive queues. `bad_state`: the machine is not
  /// started, or a buffer is not queued. `too_big`: more than kExposedMost buffers.
  [[nodiscard]] static Result<Invitation> of(const TransferMachine& machine,
                                             std::span<const Buffer* const> exposed = {});

  /// Printable ASCII without a newline: "fairlead-net-1 10.0.0.5@udp:20480:34:1", then each descriptor in hex.
  std::string to_text() const;
  /// `invalid` names the fault: another kind or version, or a malformed or damaged address or descriptor. Whether the
  /// address and descriptors are valid shows only when they are used. Leading and trailing blanks are ignored. Pure.
  [[nodiscard]] static Result<Invitation> from_text(std::string_view text);
};

/// What meet() received from the other side.
struct Met {
  EndPoint peer;                          ///< the other side's end point, on the machine that was passed to meet()
  std::vector<BufferDescriptor> exposed;  ///< for active operations
};

/// Sends Invitation::of(machine, exposed) over a connected stream socket, and receives the invitation of the other end,
/// which makes the same call. The socket may be blocking or not. It stays open and unchanged; the program may close it
/// afterwards. Errors: those of Invitation::of(), from_text() and create_end_point(); timed_out at the deadline;
/// `system` with an errno. ECONNRESET: the other end has closed the socket. EPROTO: it uses another protocol. Other
/// errnos are the kernel's. Any thread.
[[nodiscard]] Result<Met> meet(TransferMachine& machine, int socket, std::span<const Buffer* const> exposed,
                               Instant deadline);

}  // namespace fairlead::net
