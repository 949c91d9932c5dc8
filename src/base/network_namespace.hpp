#pragma once
// A network namespace: a host's network of its own. It lives as long as a process or a descriptor is in it, so nothing
// that is made in it outlives the program, however that ends.

#include <fairlead/error.hpp>

#include "base/file_descriptor.hpp"

namespace fairlead::base {

/// Moves this process, which must have one thread only, into a new and empty network where it may do anything: as it is
/// if it is privileged, else as root of a user namespace of its own.
Result<> leave_host_network();

/// Opens a new and empty network; the calling thread stays where it is.
Result<FileDescriptor> make_network();

/// Puts the calling thread into the network of a descriptor; the destructor brings it back. A negative descriptor: it
/// stays where it is. Sockets and processes made meanwhile belong to that network for good.
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
