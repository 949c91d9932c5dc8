#pragma once
// A network namespace. It lives as long as a process or a descriptor refers to it, so nothing made in it outlives the
// program.

#include <fairlead/error.hpp>

#include "base/file_descriptor.hpp"

namespace fairlead::base {

/// Moves this process, which must have a single thread, into a new and empty network where it has all rights. A
/// privileged process does it directly, others as root of their own user namespace.
Result<> leave_host_network();

/// Makes a new and empty network; the calling thread stays in its own.
Result<FileDescriptor> make_network();

/// Moves the calling thread into the network of a descriptor; the destructor moves it back. With a negative descriptor
/// it stays. Sockets and processes made meanwhile stay in that network.
class NetworkVisit {
 public:
  static Result<NetworkVisit> enter(int network);
  NetworkVisit(NetworkVisit&&) noexcept = default;
  NetworkVisit& operator=(NetworkVisit&&) = delete;
  ~NetworkVisit();

 private:
  explicit NetworkVisit(FileDescriptor home) : home_(std::move(home)) {}

  FileDescriptor home_;
};

}  // namespace fairlead::base
