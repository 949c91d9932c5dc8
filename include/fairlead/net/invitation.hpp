#pragma once
// How two programs meet that know nothing of each other's addresses: each tells the other where its transfer machine
// is, and which buffers the other may use.
//
//   meet(machine, socket, ...)       a connected stream socket will do, TCP or Unix: both ends call it
//   Invitation::to_text()            one line for a file, an environment variable, a human

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

/// What a program tells another one. Whoever knows it may use the buffers, each once.
struct Invitation {
  std::string address;                         ///< of a transfer machine, without `*`
  std::vector<BufferDescriptor> exposed = {};  ///< of buffers that are queued there as passive
  bool operator==(const Invitation&) const = default;

  static constexpr std::size_t kExposedMost = 256;
  /// Of a started machine and of buffers in its passive queues; `bad_state`: not started, or a buffer is not queued.
  /// `too_big`: more than kExposedMost buffers.
  static Result<Invitation> of(const TransferMachine& machine, std::span<const Buffer* const> exposed = {});

  /// Printable ASCII without an end of line: "fairlead-net-1 10.0.0.5@udp:20480:34:1", then each descriptor in hex.
  std::string to_text() const;
  /// `invalid` tells what is wrong: of another kind or version, or what it names is malformed or damaged. Whether the
  /// rest is true only its use can tell. Blanks around it do not matter. Pure.
  static Result<Invitation> from_text(std::string_view text);
};

/// The other side, after both have met.
struct Met {
  EndPoint peer;                          ///< of the machine that meet() was given
  std::vector<BufferDescriptor> exposed;  ///< for active operations
};

/// Tells the other end of a connected stream socket Invitation::of(machine, exposed), and takes what it tells by the
/// same call. Blocking or not, the socket stays as it was, and may be closed. Errors of Invitation::of(), from_text()
/// and create_end_point(); timed_out at the deadline; `system`, with an errno: ECONNRESET if the other end has gone,
/// EPROTO if it speaks another language, or what the kernel says. Any thread.
[[nodiscard]] Result<Met> meet(TransferMachine& machine, int socket, std::span<const Buffer* const> exposed,
                               Instant deadline);

}  // namespace fairlead::net
