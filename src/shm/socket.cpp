#include "shm/socket.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace fairlead::shm {
namespace {

constexpr std::byte kNudge{0x6e};

Credentials credentials_of(int socket) {
  ucred kernel{};
  socklen_t length = sizeof kernel;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &kernel, &length) != 0) return {};
  return {.user = kernel.uid, .group = kernel.gid, .process = kernel.pid};
}

bool is_shared_memory(int file) {
  return ::fcntl(file, F_GET_SEALS) >= 0;
}

}  // namespace

base::FileDescriptor Socket::make() {
  return base::FileDescriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

Socket::Socket(base::FileDescriptor connection, Users& users)
    : who_(credentials_of(connection.get())), is_own_(users.is_own(who_)) {
  socket_ = users.hold(std::move(connection), who_);
}

Result<Socket> Socket::connect(const Name& name, Users& users) {
  auto socket = make();
  if (!socket.is_open()) return std::unexpected(name.failed("make"));
  if (::connect(socket.get(), name.kernel(), name.length()) != 0) return std::unexpected(name.failed("connect to"));
  return Socket(std::move(socket), users);
}

std::vector<std::uint32_t> Socket::groups() const {
  constexpr std::size_t kMost = 65536;  // the kernel's limit for a process
  std::vector<std::uint32_t> all(64);
  static_assert(sizeof(gid_t) == sizeof all[0]);
  for (;;) {
    auto length = static_cast<socklen_t>(all.size() * sizeof all[0]);
    const bool is_told = ::getsockopt(socket_.get(), SOL_SOCKET, SO_PEERGROUPS, all.data(), &length) == 0;
    if (!is_told && errno == ERANGE && all.size() < kMost) {
      all.resize(std::min(kMost, length / sizeof all[0]));
      continue;
    }
    all.resize(is_told ? length / sizeof all[0] : 0);
    all.push_back(who_.group);
    return all;
  }
}

bool Socket::send(std::span<const std::byte> bytes, std::span<const int> descriptors) const {
  alignas(cmsghdr) std::byte control[CMSG_SPACE(Letter::kDescriptorsMax * sizeof(int))]{};
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

// If the buffer is full, the peer has not read earlier nudges and will not sleep.
void Socket::nudge() const noexcept {
  ::send(socket_.get(), &kNudge, sizeof kNudge, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool Socket::is_nudge(std::span<const std::byte> bytes) noexcept {
  return bytes.size() == 1 && bytes[0] == kNudge;
}

bool Socket::tell(Parting word) const noexcept {
  return ::send(socket_.get(), &word, sizeof word, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof word;
}

bool Socket::is(Parting word, std::span<const std::byte> bytes) noexcept {
  return bytes.size() == sizeof word && bytes[0] == static_cast<std::byte>(word);
}

// The kernel closes descriptors of a message that find no room, which may block for as long as the sender likes. So
// receive() first peeks at a stranger's message, which duplicates the descriptors and closes none for good. It accepts
// only messages that contain nothing but shared memory.
std::optional<Letter> Socket::receive(std::span<std::byte> bytes) const {
  alignas(cmsghdr) std::byte control[CMSG_SPACE(Letter::kDescriptorsMax * sizeof(int))]{};
  iovec piece{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const int how = MSG_DONTWAIT | MSG_CMSG_CLOEXEC;
  const ssize_t length = ::recvmsg(socket_.get(), &message, is_own_ ? how : how | MSG_PEEK);
  if (length < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  Letter letter;
  letter.bytes = length > 0 ? static_cast<std::size_t>(length) : 0;
  letter.is_strange = (message.msg_flags & MSG_CTRUNC) != 0;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(part) + i * sizeof number, sizeof number);
      base::ForeignDescriptor one(base::FileDescriptor(number), socket_.closer());
      letter.is_strange |= !is_shared_memory(number) || i >= Letter::kDescriptorsMax;
      if (i < Letter::kDescriptorsMax) letter.descriptors[i] = std::move(one);
    }
  }
  if (!is_own_ && !letter.is_strange && letter.bytes > 0)
    ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  return letter;
}

}  // namespace fairlead::shm
