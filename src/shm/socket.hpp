#pragma once
// A connection between two processes of a host: a Unix socket over which they exchange one greeting each, with
// descriptors. It then stays open, wakes the one who sleeps, and tells of the other's death.
//
// The other end may be a stranger's. No call here waits for it: what is sent and received says so with each call, and
// what would close descriptors of its choosing is left alone (receive), or to somebody else (Users).

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <fairlead/error.hpp>

#include "base/foreign_descriptor.hpp"
#include "shm/name.hpp"
#include "shm/users.hpp"

namespace fairlead::shm {

/// A message with descriptors that came along: all of shared memory that is sealed or can be.
struct Letter {
  static constexpr std::size_t kDescriptorsMax = 3;
  std::size_t bytes = 0;    // 0: the other side has closed
  bool is_strange = false;  // with descriptors that no engine sends: nothing of it was taken, the connection has to end
  base::ForeignDescriptor descriptors[kDescriptorsMax];
};

class Socket {
 public:
  Socket() = default;
  /// A connection. `users` outlives it.
  Socket(base::FileDescriptor connection, Users& users);
  /// refused: no process listens; again: it is busy.
  static Result<Socket> connect(const Name& name, Users& users);
  /// A Unix socket of the kind that engines use.
  static base::FileDescriptor make();

  int descriptor() const noexcept { return socket_.get(); }
  bool is_open() const noexcept { return socket_.is_open(); }
  const Credentials& credentials() const noexcept { return who_; }
  /// All groups of whoever is at the other end, as it was when he connected.
  std::vector<std::uint32_t> groups() const;
  /// Whether a process of our own user is at the other end.
  bool is_own() const noexcept { return is_own_; }

  bool send(std::span<const std::byte> bytes, std::span<const int> descriptors) const;
  /// Wakes the other side, if it sleeps on its descriptor. One system call.
  void nudge() const noexcept;
  static bool is_nudge(std::span<const std::byte> bytes) noexcept;
  /// Nothing if nothing has come.
  std::optional<Letter> receive(std::span<std::byte> bytes) const;

 private:
  base::ForeignDescriptor socket_;
  Credentials who_;
  bool is_own_ = false;
};

}  // namespace fairlead::shm
