#pragma once
// Peers find this engine by a Unix socket whose name holds the engine's address. The kernel removes an abstract name
// with its process, but a socket file outlives a killed process. So each engine that opens the directory removes socket
// files without a listener.

#include <expected>
#include <optional>
#include <string>

#include <fairlead/error.hpp>

#include "base/file_descriptor.hpp"
#include "base/socket_address.hpp"
#include "shm/name.hpp"
#include "shm/socket.hpp"
#include "shm/users.hpp"

namespace fairlead::shm {

class Listener {
 public:
  Listener() = default;
  struct Place {
    std::string directory{};  // empty: an abstract name
    bool is_for_all = false;  // other users may connect to the file, too
  };
  /// in_use if somebody listens there. `users` outlives it.
  static Result<Listener> open(const base::SocketAddress& address, const Place& place, Users& users);
  /// Under a name of the caller's, which is of a file in the place's directory, or abstract if that is empty.
  static Result<Listener> open(const Name& name, const Place& place, Users& users);
  /// One that another process has made and keeps: its name stays, and who is not accepted waits for whoever takes it
  /// next. invalid: it is no Unix socket of the kind that engines use, or does not listen.
  static Result<Listener> inherit(base::FileDescriptor socket, Users& users);
  /// One that the program before this one in this process had; `name`: if it is ours to remove.
  static Result<Listener> adopt(base::FileDescriptor socket, std::optional<Name> name, Users& users);
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&& other) noexcept;
  /// Nobody finds us from here on; who has not been accepted is turned away. Not so if it was inherited.
  ~Listener();

  int descriptor() const noexcept { return socket_.get(); }
  bool is_open() const noexcept { return socket_.is_open(); }
  /// The next who came; an errno if there is none to be had (EAGAIN: nobody waits).
  std::expected<Socket, int> accept() const;

  /// Removes the files in `directory` at which nobody listens any more.
  static void sweep(const std::string& directory, Users& users);

 private:
  static Result<> show(const Name& bound, const Name& name, bool is_for_all, Users& users);

  Listener(base::FileDescriptor socket, std::optional<Name> name, Users& users)
      : socket_(std::move(socket)), name_(std::move(name)), users_(&users) {}

  base::FileDescriptor socket_;
  std::optional<Name> name_;  // ours to remove; none if it was inherited
  Users* users_ = nullptr;
};

}  // namespace fairlead::shm
