#pragma once
// What goes over the Unix sockets between an application and the host engine: calls that are rare, and their answers.
// The first connection of an application attaches it, and shares its memory; each port has a connection of its own,
// which wakes whoever waits at it and tells of the other side's death.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fairlead/error.hpp>

#include "base/socket_address.hpp"
#include "host/layout.hpp"
#include "shm/name.hpp"
#include "shm/socket.hpp"

namespace fairlead::host {

struct Call {
  enum class Kind : std::uint32_t {
    attach,
    open_port,
    close_port,
    describe_peer,
    describe_flight,
    list,
    open_pairs,
    counters,
    replace  // the program, by the one that lies where this one lay; answered by that one
  };

  std::uint64_t version = kVersion;
  std::uint32_t kind = 0;
  std::uint32_t index = 0;         // of the port, chosen by the application
  std::uint32_t number = 0;        // open_port: which, or the first of `count`
  std::uint32_t count = 0;         // open_port: 0: that one; else any of so many
  std::uint64_t application = 0;   // open_port, open_pairs: the secret of the answer to attach
  std::uint64_t memory_bytes = 0;  // attach, open_pairs: of the (second) descriptor that comes along
  PlainAddress address{};          // attach: the engine; describe: the peer
};

struct Answer {
  std::uint32_t status = 0;
  std::int32_t system_errno = 0;
  std::uint32_t number = 0;          // of the port
  std::uint32_t operations_max = 0;  // attach: that may be pending
  std::uint64_t application = 0;
  std::uint64_t epoch = 0, message_size_max = 0;
  PlainAddress address{};
};
/// Bytes of text that an answer may have behind it.
inline constexpr std::size_t kTextMost = 64UL << 10;

/// Of the file that the host engine listens at. It is connected to again and again, so its path has to be absolute.
Result<shm::Name> socket_name(const std::string& file);

PlainAddress to_plain(const base::SocketAddress& address);
base::SocketAddress from_plain(const PlainAddress& address);
/// `system` if it is none.
Status status_from(std::uint64_t number);

/// Nothing if these bytes are none.
std::optional<Call> call_from(std::span<const std::byte> bytes);

/// An answer as it was received.
struct Answered {
  Answer answer;
  std::string text;
};

/// Sends an error's or a description's text, cut to kTextMost, with it. False: the other side does not take it now.
bool send_answer(const shm::Socket& to, Answer answer, std::string_view text = {});
bool send_failure(const shm::Socket& to, const Error& error);
/// Sends the call, and descriptors along, and waits for its answer, at most kPatience. An answer that says no becomes
/// the error that it tells.
Result<Answered> make_call(const shm::Socket& to, const Call& call, std::span<const int> descriptors = {});

}  // namespace fairlead::host
