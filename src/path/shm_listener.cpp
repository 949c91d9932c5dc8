#include "path/shm_listener.hpp"

#include <dirent.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

#include <fmt/format.h>

namespace fairlead::path {
namespace {

constexpr int kBacklog = 1024;
constexpr int kSweptMax = 65536;  // names looked at in one directory

/// Whether nobody listens at a file any more.
bool is_dead(const ShmName& name, ShmUsers& users) {
  const auto somebody = ShmSocket::connect(name, users);
  return !somebody && somebody.error().system_errno == ECONNREFUSED;
}

}  // namespace

Result<ShmListener> ShmListener::open(const base::SocketAddress& address, const std::string& directory,
                                      ShmUsers& users) {
  auto name = ShmName::of(address, directory);
  if (!name) return std::unexpected(std::move(name.error()));
  auto socket = ShmSocket::make();
  if (!socket.is_open()) return std::unexpected(name->failed("make"));
  const bool is_file = !directory.empty();
  if (is_file && is_dead(*name, users)) ::unlink(name->text().c_str());
  if (::bind(socket.get(), name->kernel(), name->length()) != 0) return std::unexpected(name->failed("bind"));
  if (::listen(socket.get(), kBacklog) != 0) return std::unexpected(name->failed("listen at"));
  return ShmListener(std::move(socket), std::move(*name), users);
}

ShmListener::ShmListener(ShmListener&& other) noexcept = default;

ShmListener& ShmListener::operator=(ShmListener&& other) noexcept {
  std::swap(socket_, other.socket_);
  std::swap(name_, other.name_);
  std::swap(users_, other.users_);
  return *this;
}

// What strangers have sent to a connection goes with it when that is closed, so each is closed as theirs.
ShmListener::~ShmListener() {
  if (!socket_.is_open()) return;
  if (!name_.is_abstract()) ::unlink(name_.text().c_str());
  ::shutdown(socket_.get(), SHUT_RDWR);  // nobody connects any more
  std::expected<ShmSocket, int> waiting = accept();
  while (waiting) waiting = accept();
  if (waiting.error() == EMFILE || waiting.error() == ENFILE) users_->closer().close(std::move(socket_));
}

std::expected<ShmSocket, int> ShmListener::accept() const {
  base::FileDescriptor socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket.is_open()) return std::unexpected(errno);
  return ShmSocket(std::move(socket), *users_);
}

void ShmListener::sweep(const std::string& directory, ShmUsers& users) {
  if (directory.empty()) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(directory.c_str()), &::closedir);
  if (!entries) return;
  for (int i = 0; i < kSweptMax; ++i) {
    const dirent* entry = ::readdir(entries.get());
    if (entry == nullptr) return;
    if (!ShmName::is_engines(entry->d_name)) continue;
    const auto name = ShmName::of_file(fmt::format("{}/{}", directory, entry->d_name));
    if (name && is_dead(*name, users)) ::unlink(name->text().c_str());
  }
}

}  // namespace fairlead::path
