#pragma once
// Tells when interfaces or addresses have changed, by the kernel's notifications. Their contents are ignored: the
// caller reads local_interfaces() again.

#include <cstdint>

#include <fairlead/error.hpp>

#include "base/file_descriptor.hpp"

namespace fairlead::base {

/// Returns whether the interface exists, up or down.
bool has_interface(std::uint32_t index);

class InterfaceWatch {
 public:
  static Result<InterfaceWatch> open();

  /// Readable when something has changed since the last drain().
  int descriptor() const { return socket_.get(); }
  void drain();

 private:
  explicit InterfaceWatch(FileDescriptor socket) : socket_(std::move(socket)) {}

  FileDescriptor socket_;
};

}  // namespace fairlead::base
