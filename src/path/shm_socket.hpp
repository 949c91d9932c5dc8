#pragma once
// How two processes of a host meet: a Unix socket named by the engine's address, over which they exchange one greeting
// each, with descriptors. It then stays open and tells of the other's death.
//
// The name is abstract (nothing in the file system, one name space per network namespace), or a file in a directory
// that containers share. A file outlives a killed process: whoever comes next to the directory removes dead ones.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <fairlead/error.hpp>

#include "base/file_descriptor.hpp"
#include "base/socket_address.hpp"

namespace fairlead::path {

/// Who is at the other end, as the kernel says.
struct ShmCredentials {
  std::uint32_t user = ~0U;
  std::int32_t process = 0;  // 0 if it is in a foreign PID namespace
};

/// A message with descriptors that came along.
struct ShmLetter {
  static constexpr std::size_t kDescriptorsMax = 4;
  std::size_t bytes = 0;  // 0: the other side has closed
  base::FileDescriptor descriptors[kDescriptorsMax];
};

class ShmSocket {
 public:
  ShmSocket() = default;

  /// `directory` empty: an abstract name. in_use if somebody listens there.
  static Result<ShmSocket> listen(const base::SocketAddress& address, const std::string& directory);
  /// refused: nobody listens; again: it is busy.
  static Result<ShmSocket> connect(const base::SocketAddress& address, const std::string& directory);
  /// Nothing if nobody waits.
  std::optional<ShmSocket> accept() const;

  int descriptor() const noexcept { return socket_.get(); }
  bool is_open() const noexcept { return socket_.is_open(); }
  ShmCredentials credentials() const;
  bool send(std::span<const std::byte> bytes, std::span<const int> descriptors) const;
  /// Nothing if nothing has come.
  std::optional<ShmLetter> receive(std::span<std::byte> bytes) const;

 private:
  explicit ShmSocket(base::FileDescriptor socket) : socket_(std::move(socket)) {}
  base::FileDescriptor socket_;
};

/// A listener's file is removed when it ends; the abstract name goes by itself.
void remove_shm_name(const base::SocketAddress& address, const std::string& directory);
/// Removes the files in `directory` at which nobody listens any more.
void sweep_shm_names(const std::string& directory);

}  // namespace fairlead::path
