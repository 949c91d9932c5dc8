#include "base/owned_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/file_signals.hpp"

#include "base/file_descriptor.hpp"

namespace fairlead::base {
namespace {

constexpr off_t kBytesMost = 1 << 20;

std::unexpected<Error> failed(const std::string& path, const char* what, int number) {
  return std::unexpected(Error{Status::system, number,
                               fmt::format("{}: cannot {}: {}", path, what, std::generic_category().message(number))});
}

std::unexpected<Error> refused(const std::string& path, const std::string& why) {
  return std::unexpected(Error{Status::not_permitted, 0, fmt::format("{}: {}", path, why)});
}

Result<> judge(const std::string& path, const struct stat& is, FileTrust trust) {
  if (!S_ISREG(is.st_mode)) return refused(path, "is no regular file");
  if (is.st_nlink != 1) return refused(path, "has further names (hard links), under which it may be changed: copy it");
  if (is.st_uid != ::geteuid() && is.st_uid != 0) {
    return refused(path,
                   fmt::format("belongs to user {}: it must be this user's ({}) or root's", is.st_uid, ::geteuid()));
  }
  const mode_t forbidden = trust == FileTrust::secret ? 077 : 022;
  if ((is.st_mode & forbidden) != 0) {
    return refused(path, fmt::format("its mode {:o} lets others {} it: chmod {} it", is.st_mode & 07777,
                                     trust == FileTrust::secret ? "read or write" : "write",
                                     trust == FileTrust::secret ? "600" : "644"));
  }
  if (is.st_size > kBytesMost) return refused(path, fmt::format("has {} bytes, more than {}", is.st_size, kBytesMost));
  return {};
}

}  // namespace

Result<std::string> read_owned_file(const std::string& path, FileTrust trust) {
  // Not waiting: a pipe in its place would hold us up.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file.is_open() && errno == ELOOP) return refused(path, "is a symbolic link: name the file itself");
  if (!file.is_open()) return failed(path, "open it", errno);
  struct stat is{};
  if (::fstat(file.get(), &is) != 0) return failed(path, "look at it", errno);
  if (auto good = judge(path, is, trust); !good) return std::unexpected(std::move(good.error()));
  std::string text(static_cast<std::size_t>(is.st_size), '\0');
  std::size_t length = 0;
  while (length < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + length, text.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(path, "read it", errno);
    if (got == 0) break;
    length += static_cast<std::size_t>(got);
  }
  text.resize(length);
  return text;
}

Result<> create_secret_file(const std::string& path, std::string_view text) {
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.is_open() && errno == EEXIST) return refused(path, "exists already: it is not overwritten");
  if (!file.is_open()) return failed(path, "create it", errno);
  if (!write_all_at(file.get(), std::as_bytes(std::span(text)), 0)) {
    const int number = errno;
    ::unlink(path.c_str());
    return failed(path, "write it", number);
  }
  return {};
}

}  // namespace fairlead::base
