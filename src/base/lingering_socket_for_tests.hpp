#pragma once
// A descriptor whose last close takes an hour: a lingering TCP socket, full of unread data.

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "base/file_descriptor.hpp"

namespace fairlead::base {

class LingeringSocket {
 public:
  LingeringSocket() {
    const FileDescriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const kernel = reinterpret_cast<sockaddr*>(&address);
    ::bind(listener.get(), kernel, length);
    ::listen(listener.get(), 1);
    ::getsockname(listener.get(), kernel, &length);
    socket_ = FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ::connect(socket_.get(), kernel, length);
    other_ = FileDescriptor(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ::fcntl(socket_.get(), F_SETFL, O_NONBLOCK);
    std::array<char, 65536> bytes{};
    while (::write(socket_.get(), bytes.data(), bytes.size()) > 0) {
    }
    const linger hour{.l_onoff = 1, .l_linger = 3600};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &hour, sizeof hour);
  }

  int get() const { return socket_.get(); }
  FileDescriptor take() { return std::move(socket_); }
  /// Ends the lingering, so that a thread that is closing it returns.
  void abort() { other_.reset(); }

 private:
  FileDescriptor socket_, other_;
};

}  // namespace fairlead::base
