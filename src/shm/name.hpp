#pragma once
// The name of an engine's Unix socket: abstract (nothing in the file system, one name space per network namespace), or
// a file in a directory that containers share.

#include <string>
#include <string_view>

#include <sys/socket.h>
#include <sys/un.h>

#include <fairlead/error.hpp>

#include "base/socket_address.hpp"

namespace fairlead::shm {

class Name {
 public:
  /// Of the engine at an address; `directory` empty: abstract. Invalid if it is too long.
  static Result<Name> of(const base::SocketAddress& address, const std::string& directory);
  /// Of a socket file that is not to be found yet.
  static Result<Name> of_new(const std::string& directory);
  static bool is_new(std::string_view file_name);
  /// Of a file.
  static Result<Name> of_file(const std::string& file) { return make(file, false); }
  /// Whether a file of that name in the directory may be an engine's.
  static bool is_engines(std::string_view file_name);

  bool is_abstract() const noexcept { return is_abstract_; }
  const sockaddr* kernel() const noexcept { return reinterpret_cast<const sockaddr*>(&address_); }
  socklen_t length() const noexcept { return length_; }
  /// The file; for people if it is abstract.
  const std::string& text() const noexcept { return text_; }

  /// What could not be done with it, by errno.
  Error failed(std::string_view what) const;

 private:
  static Result<Name> make(const std::string& text, bool is_abstract);

  sockaddr_un address_{};
  socklen_t length_ = 0;
  bool is_abstract_ = false;
  std::string text_;
};

}  // namespace fairlead::shm
