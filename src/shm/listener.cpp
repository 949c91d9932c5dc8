#include "shm/listener.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <memory>
#include <utility>

#include <fmt/format.h>

namespace fairlead::shm {
namespace {

constexpr int kBacklog = 1024;
constexpr int kSweptMax = 65536;  // names to look at in one directory

bool is_socket(const Name& name) {
  struct stat facts{};
  return ::lstat(name.text().c_str(), &facts) == 0 && S_ISSOCK(facts.st_mode);
}

/// Returns whether a socket file has no listener any more. Other files refuse connections too, but belong to somebody.
bool is_dead(const Name& name, Users& users) {
  if (!is_socket(name)) return false;
  const auto somebody = Socket::connect(name, users);
  return !somebody && somebody.error().system_errno == ECONNREFUSED;
}

/// Returns whether an unnamed socket is older than a minute. A younger one is about to get its name.
bool is_old(const Name& name) {
  constexpr std::time_t kSeconds = 60;
  struct stat facts{};
  return ::lstat(name.text().c_str(), &facts) == 0 && facts.st_mtime + kSeconds < std::time(nullptr);
}

}  // namespace

Result<Listener> Listener::open(const base::SocketAddress& address, const Place& place, Users& users) {
  const auto name = Name::of(address, place.directory);
  if (!name) return std::unexpected(name.error());
  return open(*name, place, users);
}

Result<Listener> Listener::open(const Name& name, const Place& place, Users& users) {
  auto socket = Socket::make();
  if (!socket.is_open()) return std::unexpected(name.failed("make"));
  const auto bound = place.directory.empty() ? Result<Name>(name) : Name::of_new(place.directory);
  if (!bound) return std::unexpected(bound.error());
  if (::bind(socket.get(), bound->kernel(), bound->length()) != 0) return std::unexpected(bound->failed("bind"));
  const bool listens = ::listen(socket.get(), kBacklog) == 0;
  if (place.directory.empty()) {
    if (!listens) return std::unexpected(name.failed("listen at"));
  } else {
    const auto shown =
        listens ? show(*bound, name, place.is_for_all, users) : std::unexpected(bound->failed("listen at"));
    ::unlink(bound->text().c_str());
    if (!shown) return std::unexpected(shown.error());
  }
  return Listener(std::move(socket), name, users);
}

Result<Listener> Listener::inherit(base::FileDescriptor socket, Users& users) {
  const auto option = [&](int name) {
    int value = -1;
    socklen_t length = sizeof value;
    return ::getsockopt(socket.get(), SOL_SOCKET, name, &value, &length) == 0 ? value : -1;
  };
  if (option(SO_DOMAIN) != AF_UNIX || option(SO_TYPE) != SOCK_SEQPACKET || option(SO_ACCEPTCONN) != 1 ||
      ::fcntl(socket.get(), F_SETFL, O_NONBLOCK) != 0) {
    return std::unexpected(Error{Status::invalid, 0,
                                 "the socket that was handed over is not one that listens for connections of sequenced "
                                 "packets: use ListenSequentialPacket= in the systemd unit"});
  }
  return Listener(std::move(socket), std::nullopt, users);
}

Result<Listener> Listener::adopt(base::FileDescriptor socket, std::optional<Name> name, Users& users) {
  auto listener = inherit(std::move(socket), users);
  if (listener) listener->name_ = std::move(name);
  return listener;
}

/// Links the socket file to its public name. It listens already, so nobody mistakes it for a dead one.
Result<> Listener::show(const Name& bound, const Name& name, bool is_for_all, Users& users) {
  if (is_dead(name, users)) ::unlink(name.text().c_str());
  const base::FileDescriptor file(::open(bound.text().c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat facts{};
  if (!file.is_open() || ::fstat(file.get(), &facts) != 0) return std::unexpected(bound.failed("find"));
  if (!S_ISSOCK(facts.st_mode) || facts.st_uid != ::geteuid()) {
    errno = EPERM;
    return std::unexpected(bound.failed("keep"));
  }
  // Refers to this inode, even if the name leads elsewhere by now.
  const std::string same = fmt::format("/proc/self/fd/{}", file.get());
  if (::chmod(same.c_str(), is_for_all ? 0666 : 0600) != 0) return std::unexpected(bound.failed("set the mode of"));
  if (::linkat(AT_FDCWD, bound.text().c_str(), AT_FDCWD, name.text().c_str(), 0) == 0) return {};
  if (errno == EEXIST && is_socket(name)) errno = EADDRINUSE;
  return std::unexpected(name.failed("bind"));
}

Listener::Listener(Listener&& other) noexcept = default;

Listener& Listener::operator=(Listener&& other) noexcept {
  std::swap(socket_, other.socket_);
  std::swap(name_, other.name_);
  std::swap(users_, other.users_);
  return *this;
}

// Descriptors that strangers sent go with the connection when it closes. Each waiting connection is therefore closed as
// a stranger's.
Listener::~Listener() {
  if (!socket_.is_open() || !name_) return;
  if (!name_->is_abstract()) ::unlink(name_->text().c_str());
  ::shutdown(socket_.get(), SHUT_RDWR);  // refuses new connections
  std::expected<Socket, int> waiting = accept();
  while (waiting) waiting = accept();
  if (waiting.error() == EMFILE || waiting.error() == ENFILE) users_->closer().close(std::move(socket_));
}

std::expected<Socket, int> Listener::accept() const {
  base::FileDescriptor socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket.is_open()) return std::unexpected(errno);
  return Socket(std::move(socket), *users_);
}

void Listener::sweep(const std::string& directory, Users& users) {
  if (directory.empty()) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(directory.c_str()), &::closedir);
  if (!entries) return;
  for (int i = 0; i < kSweptMax; ++i) {
    const dirent* entry = ::readdir(entries.get());
    if (entry == nullptr) return;
    const bool is_new = Name::is_new(entry->d_name);
    if (!is_new && !Name::is_engines(entry->d_name)) continue;
    const auto name = Name::of_file(fmt::format("{}/{}", directory, entry->d_name));
    if (name && is_dead(*name, users) && (!is_new || is_old(*name))) ::unlink(name->text().c_str());
  }
}

}  // namespace fairlead::shm
