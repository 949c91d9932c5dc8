#pragma once
// A connection between two local processes: a Unix socket over which each sends one greeting with descriptors. The
// socket then stays open to wake the sleeping side and to report the other's death.
//
// The other end may be a stranger. No call here waits for it: each send and receive is explicitly non-blocking. Closing
// descriptors that a stranger chose may block, so receive() rejects them, or Users closes them on its own thread.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <fairlead/error.hpp>

#include "base/foreign_descriptor.hpp"
#include "shm/name.hpp"
#include "shm/users.hpp"

namespace fairlead::shm {

/// A message and its descriptors, each of which is shared memory that is sealed or can be.
struct Letter {
  static constexpr std::size_t kDescriptorsMax = 3;
  std::size_t bytes = 0;  // 0: the other side has closed
  // It came with descriptors that no engine sends: they were rejected, and the connection must end.
  bool is_strange = false;
  base::ForeignDescriptor descriptors[kDescriptorsMax];
};

class Socket {
 public:
  Socket() = default;
  /// `users` must outlive the socket.
  Socket(base::FileDescriptor connection, Users& users);
  /// Returns `refused` if no process listens, `again` if the listener is busy.
  static Result<Socket> connect(const Name& name, Users& users);
  /// Creates a Unix socket of the kind that engines use.
  static base::FileDescriptor make();

  int descriptor() const noexcept { return socket_.get(); }
  bool is_open() const noexcept { return socket_.is_open(); }
  const Credentials& credentials() const noexcept { return who_; }
  /// Returns all groups of the other process, as they were when it connected.
  std::vector<std::uint32_t> groups() const;
  /// Returns whether the other process belongs to our own user.
  bool is_own() const noexcept { return is_own_; }

  bool send(std::span<const std::byte> bytes, std::span<const int> descriptors) const;
  /// Wakes the other side if it sleeps on its descriptor. One system call.
  void nudge() const noexcept;
  static bool is_nudge(std::span<const std::byte> bytes) noexcept;
  /// What a side that parts tells the other one (docs/shm.md).
  enum class Parting : std::uint8_t { asks = 0x70, is_done = 0x64 };
  /// Returns false if the buffer is full.
  bool tell(Parting word) const noexcept;
  static bool is(Parting word, std::span<const std::byte> bytes) noexcept;
  /// Returns nullopt if nothing has come.
  std::optional<Letter> receive(std::span<std::byte> bytes) const;

 private:
  base::ForeignDescriptor socket_;
  Credentials who_;
  bool is_own_ = false;
};

}  // namespace fairlead::shm
