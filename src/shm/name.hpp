#pragma once
// The name of an engine's Unix socket. It is abstract (per network namespace, nothing in the file system), or a file in
// a directory that containers share.

#include <string>
#include <string_view>

#include <sys/socket.h>
#include <sys/un.h>

#include <fairlead/error.hpp>

#include "base/socket_address.hpp"

namespace fairlead::shm {

class Name {
 public:
  /// Returns the name for the engine at `address`. An empty `directory` selects an abstract name. Returns `invalid` if
  /// it is too long.
  static Result<Name> of(const base::SocketAddress& address, const std::string& directory);
  /// Returns a temporary name, for a socket file that other engines must not find yet.
  static Result<Name> of_new(const std::string& directory);
  static bool is_new(std::string_view file_name);
  /// Returns the name of a given file.
  static Result<Name> of_file(const std::string& file) { return make(file, false); }
  /// Returns whether this file name can be an engine's socket.
  static bool is_engines(std::string_view file_name);

  bool is_abstract() const noexcept { return is_abstract_; }
  const sockaddr* kernel() const noexcept { return reinterpret_cast<const sockaddr*>(&address_); }
  socklen_t length() const noexcept { return length_; }
  /// The path; for an abstract name, a text for people.
  const std::string& text() const noexcept { return text_; }

  /// Returns an error that says what failed, with errno's reason.
  Error failed(std::string_view what) const;

 private:
  static Result<Name> make(const std::string& text, bool is_abstract);

  sockaddr_un address_{};
  socklen_t length_ = 0;
  bool is_abstract_ = false;
  std::string text_;
};

}  // namespace fairlead::shm
