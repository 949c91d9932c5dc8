#pragma once
// The protocol of the Unix sockets between an application and the host engine: rare calls and their answers. The
// application's first connection attaches it and shares its memory. Each port has a connection of its own, which wakes
// sleepers and reports the other side's death.

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
    replace,    // replaces the program by the one at the same path, which answers
    next_loss,  // the loss of a peer after the first `application` ones
    peer_facts
  };

  std::uint64_t version = kVersion;
  std::uint32_t kind = 0;
  std::uint32_t index = 0;         // of the port, chosen by the application
  std::uint32_t number = 0;        // open_port: the port's number, or the first of `count`. describe_peer: the Status
                                   // with which an operation ended, or 0
  std::uint32_t count = 0;         // open_port: 0: exactly that port; else any of so many. list: most rows, or 0
  std::uint64_t application = 0;   // open_port, open_pairs: the secret from the answer to attach; list: where to begin
  std::uint64_t memory_bytes = 0;  // attach, open_pairs: size of the (second) descriptor sent along
  PlainAddress address{};          // attach: the engine; describe, peer_facts: the peer
};

struct Answer {
  std::uint32_t status = 0;
  std::int32_t system_errno = 0;
  // open_port: the port's number. attach: the most events that all ports may reserve. list: the bytes of a row.
  std::uint32_t number = 0;
  std::uint32_t operations_max = 0;  // attach: the most that may be pending
  std::uint64_t application = 0;     // list: where to go on; 0: this is all
  std::uint64_t epoch = 0, message_size_max = 0;
  PlainAddress address{};  // attach: the engine; next_loss: the peer (lost_peer.hpp). peer_facts: peer_facts.hpp
};
/// Most bytes of text that follow an answer.
inline constexpr std::size_t kTextMost = 64UL << 10;

/// Returns the name of the host engine's socket file. The path must be absolute, because it is used again later.
Result<shm::Name> socket_name(const std::string& file);

PlainAddress to_plain(const base::SocketAddress& address);
base::SocketAddress from_plain(const PlainAddress& address);
/// Returns `system` for an unknown number.
Status status_from(std::uint64_t number);

/// Returns nullopt if the bytes are no call.
std::optional<Call> call_from(std::span<const std::byte> bytes);

/// A received answer.
struct Answered {
  Answer answer;
  std::string text;
};

/// Sends an answer with a text, for instance of an error, cut to kTextMost. Does not block. Returns false if it cannot
/// be sent now.
bool send_answer(const shm::Socket& to, Answer answer, std::string_view text = {});
bool send_failure(const shm::Socket& to, const Error& error);
/// Sends a call with descriptors and waits at most 10 s for its answer. A negative answer becomes its error. Returns
/// `restarted` if the host engine closed the connection, `silent` if it does not answer in time.
Result<Answered> make_call(const shm::Socket& to, const Call& call, std::span<const int> descriptors = {});

}  // namespace fairlead::host
