#pragma once
// Peers find this engine by a Unix socket whose name contains the engine's address. The kernel removes an abstract name
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
  /// Returns `in_use` if another process listens there. `users` must outlive the listener.
  static Result<Listener> open(const base::SocketAddress& address, const Place& place, Users& users);
  /// Uses the caller's name: a file in the place's directory, or abstract if that is empty.
  static Result<Listener> open(const Name& name, const Place& place, Users& users);
  /// Uses a socket that another process created and keeps. Its name stays when this object goes, and connections that
  /// nobody accepted wait for the next user. Returns `invalid` if it is not listening or not of the kind that engines
  /// use.
  static Result<Listener> inherit(base::FileDescriptor socket, Users& users);
  /// Takes over the socket of the previous program in this process. `name` is set if this object shall remove it.
  static Result<Listener> adopt(base::FileDescriptor socket, std::optional<Name> name, Users& users);
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&& other) noexcept;
  /// Removes the name, and turns away connections that are not accepted. Does neither for an inherited socket.
  ~Listener();

  int descriptor() const noexcept { return socket_.get(); }
  bool is_open() const noexcept { return socket_.is_open(); }
  /// Returns the next connection, or an errno if there is none (EAGAIN: none waits).
  std::expected<Socket, int> accept() const;

  /// Removes socket files in `directory` that have no listener.
  static void sweep(const std::string& directory, Users& users);

 private:
  static Result<> show(const Name& bound, const Name& name, bool is_for_all, Users& users);

  Listener(base::FileDescriptor socket, std::optional<Name> name, Users& users)
      : socket_(std::move(socket)), name_(std::move(name)), users_(&users) {}

  base::FileDescriptor socket_;
  std::optional<Name> name_;  // the name to remove; nullopt if inherited
  Users* users_ = nullptr;
};

}  // namespace fairlead::shm
