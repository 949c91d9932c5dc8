#pragma once
// A second process of a test, and the messages between it and the test.

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "base/file_descriptor.hpp"

namespace fairlead::tests {

/// A child process that runs `live` with one end of a socket pair, until it is killed.
class Fellow {
 public:
  explicit Fellow(const std::function<void(int socket)>& live) {
    int ends[2] = {-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
    process_ = ::fork();
    if (process_ == 0) {
      ::close(ends[0]);
      live(ends[1]);
      ::_exit(0);
    }
    ::close(ends[1]);
    socket_ = base::FileDescriptor(ends[0]);
  }
  ~Fellow() { kill(); }
  Fellow(const Fellow&) = delete;
  Fellow& operator=(const Fellow&) = delete;

  void kill() {
    if (process_ > 0) ::kill(process_, SIGKILL), ::waitpid(process_, nullptr, 0);
    process_ = -1;
  }
  /// Stops the process until go_on(). False if it has ended.
  bool stop() const {
    int status = 0;
    return ::kill(process_, SIGSTOP) == 0 && ::waitpid(process_, &status, WUNTRACED) == process_ && WIFSTOPPED(status);
  }
  void go_on() const { ::kill(process_, SIGCONT); }
  pid_t process() const { return process_; }
  int socket() const { return socket_.get(); }

 private:
  pid_t process_ = -1;
  base::FileDescriptor socket_;
};

template <typename Value>
bool tell(int socket, const Value& value) {
  return ::send(socket, &value, sizeof value, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof value);
}
template <typename Value>
bool hear(int socket, Value& value) {
  return ::recv(socket, &value, sizeof value, MSG_WAITALL) == static_cast<ssize_t>(sizeof value);
}

}  // namespace fairlead::tests
