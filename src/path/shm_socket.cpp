#include "path/shm_socket.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace fairlead::path {
namespace {

constexpr std::string_view kPrefix = "fairlead-", kSuffix = ".shm";
constexpr int kBacklog = 1024;
constexpr int kSweptMax = 65536;  // names looked at in one directory

struct UnixName {
  sockaddr_un address{};
  socklen_t length = 0;
  bool is_good = false;
};

// A loopback address means another engine in each network namespace, a shared directory only one.
std::string name_of(const base::SocketAddress& address, bool is_shared) {
  struct stat space{};
  if (!is_shared || !address.is_loopback() || ::stat("/proc/self/ns/net", &space) != 0)
    return fmt::format("{}{}{}", kPrefix, address.to_string(), kSuffix);
  return fmt::format("{}{}-{}{}", kPrefix, address.to_string(), space.st_ino, kSuffix);
}

std::string file_of(const base::SocketAddress& address, const std::string& directory) {
  return fmt::format("{}/{}", directory, name_of(address, true));
}

UnixName unix_name(std::string_view text, bool is_abstract) {
  UnixName name;
  name.address.sun_family = AF_UNIX;
  const std::size_t start = is_abstract ? 1 : 0;
  if (text.size() + 1 > sizeof name.address.sun_path) return name;
  std::memcpy(name.address.sun_path + start, text.data(), text.size());
  name.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + text.size() + 1);
  name.is_good = true;
  return name;
}

UnixName unix_name(const base::SocketAddress& address, const std::string& directory) {
  return directory.empty() ? unix_name(name_of(address, false), true) : unix_name(file_of(address, directory), false);
}

base::FileDescriptor make_socket() {
  return base::FileDescriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

std::unexpected<Error> failed(std::string_view what, const base::SocketAddress& address, const std::string& directory) {
  const int number = errno;
  const Status status = number == EADDRINUSE                         ? Status::in_use
                        : number == ECONNREFUSED || number == ENOENT ? Status::refused
                        : number == EAGAIN                           ? Status::again
                                                                     : Status::system;
  const std::string name =
      directory.empty() ? fmt::format("@{}", name_of(address, false)) : file_of(address, directory);
  return std::unexpected(
      Error{status, number, fmt::format("cannot {} the Unix socket {}: {}", what, name, std::strerror(number))});
}

bool is_dead(const std::string& file) {
  const UnixName name = unix_name(file, false);
  const auto socket = make_socket();
  if (!name.is_good || !socket.is_open()) return false;
  const auto* kernel = reinterpret_cast<const sockaddr*>(&name.address);
  return ::connect(socket.get(), kernel, name.length) != 0 && errno == ECONNREFUSED;
}

}  // namespace

Result<ShmSocket> ShmSocket::listen(const base::SocketAddress& address, const std::string& directory) {
  const UnixName name = unix_name(address, directory);
  if (!name.is_good) {
    return std::unexpected(
        Error{Status::invalid, 0, fmt::format("shm_directory '{}' is too long for a Unix socket", directory)});
  }
  auto socket = make_socket();
  if (!socket.is_open()) return failed("make", address, directory);
  const auto* kernel = reinterpret_cast<const sockaddr*>(&name.address);
  if (!directory.empty() && is_dead(file_of(address, directory))) remove_shm_name(address, directory);
  if (::bind(socket.get(), kernel, name.length) != 0) return failed("bind", address, directory);
  if (::listen(socket.get(), kBacklog) != 0) return failed("listen at", address, directory);
  return ShmSocket(std::move(socket));
}

Result<ShmSocket> ShmSocket::connect(const base::SocketAddress& address, const std::string& directory) {
  const UnixName name = unix_name(address, directory);
  auto socket = make_socket();
  if (!name.is_good || !socket.is_open()) return failed("make", address, directory);
  const auto* kernel = reinterpret_cast<const sockaddr*>(&name.address);
  if (::connect(socket.get(), kernel, name.length) != 0) return failed("connect to", address, directory);
  return ShmSocket(std::move(socket));
}

std::optional<ShmSocket> ShmSocket::accept() const {
  base::FileDescriptor socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket.is_open()) return std::nullopt;
  return ShmSocket(std::move(socket));
}

ShmCredentials ShmSocket::credentials() const {
  ucred kernel{};
  socklen_t length = sizeof kernel;
  if (::getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &kernel, &length) != 0) return {};
  return {kernel.uid, kernel.pid};
}

bool ShmSocket::send(std::span<const std::byte> bytes, std::span<const int> descriptors) const {
  alignas(cmsghdr) std::byte control[CMSG_SPACE(ShmLetter::kDescriptorsMax * sizeof(int))]{};
  iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  }
  return ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(bytes.size());
}

std::optional<ShmLetter> ShmSocket::receive(std::span<std::byte> bytes) const {
  alignas(cmsghdr) std::byte control[CMSG_SPACE(ShmLetter::kDescriptorsMax * sizeof(int))]{};
  iovec piece{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t length = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (length < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  ShmLetter letter;
  letter.bytes = length > 0 ? static_cast<std::size_t>(length) : 0;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(part) + i * sizeof number, sizeof number);
      base::FileDescriptor one(number);  // more than we want are closed at once
      if (i < ShmLetter::kDescriptorsMax) letter.descriptors[i] = std::move(one);
    }
  }
  return letter;
}

void remove_shm_name(const base::SocketAddress& address, const std::string& directory) {
  if (!directory.empty()) ::unlink(file_of(address, directory).c_str());
}

void sweep_shm_names(const std::string& directory) {
  if (directory.empty()) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(directory.c_str()), &::closedir);
  if (!entries) return;
  for (int i = 0; i < kSweptMax; ++i) {
    const dirent* entry = ::readdir(entries.get());
    if (entry == nullptr) return;
    const std::string_view name = entry->d_name;
    const std::string file = fmt::format("{}/{}", directory, name);
    if (name.starts_with(kPrefix) && name.ends_with(kSuffix) && is_dead(file)) ::unlink(file.c_str());
  }
}

}  // namespace fairlead::path
