#include "base/owned_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/file_descriptor.hpp"
#include "base/file_signals.hpp"
#include "base/folder.hpp"
#include "base/shown.hpp"

namespace fairlead::base {
namespace {

constexpr off_t kBytesMost = 1 << 20;

std::unexpected<Error> cannot(const std::string& path, const char* what, int number) {
  return std::unexpected(
      Error{Status::system, number,
            fmt::format("{}: cannot {}: {}", shown(path, kPathShown), what, std::generic_category().message(number))});
}

std::unexpected<Error> mistrusted(const std::string& path, const std::string& why) {
  return std::unexpected(Error{Status::not_permitted, 0, fmt::format("{}: {}", shown(path, kPathShown), why)});
}

Result<> judge(const std::string& path, const struct stat& is, FileTrust trust) {
  if (!S_ISREG(is.st_mode)) return mistrusted(path, "is no regular file");
  if (is.st_nlink != 1)
    return mistrusted(path, "has further names (hard links), under which it may be changed: copy it");
  if (is.st_uid != ::geteuid() && is.st_uid != 0) {
    return mistrusted(path,
                      fmt::format("belongs to user {}: it must be this user's ({}) or root's", is.st_uid, ::geteuid()));
  }
  const mode_t forbidden = trust == FileTrust::secret ? 077 : 022;
  if ((is.st_mode & forbidden) != 0) {
    return mistrusted(path, fmt::format("its mode {:o} lets others {} it: chmod {} it", is.st_mode & 07777,
                                        trust == FileTrust::secret ? "read or write" : "write",
                                        trust == FileTrust::secret ? "600" : "644"));
  }
  if (is.st_size > kBytesMost)
    return mistrusted(path, fmt::format("has {} bytes, more than {}", is.st_size, kBytesMost));
  return {};
}

/// Opens a file in a folder where nobody else can replace it (base/folder.hpp).
Result<FileDescriptor> open_file(const std::string& path, int flags) {
  const std::filesystem::path whole(path);
  const auto folder = open_folder(whole.has_parent_path() ? whole.parent_path().string() : ".");
  if (!folder) return std::unexpected(folder.error());
  // Non-blocking: a pipe in its place would make the call wait.
  FileDescriptor file(
      ::openat(folder->get(), whole.filename().c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600));
  if (file.is_open()) return file;
  if (errno == ELOOP) return mistrusted(path, "is a symbolic link: name the file itself");
  if (errno == EEXIST) return mistrusted(path, "exists already: it is not overwritten");
  return cannot(path, (flags & O_CREAT) != 0 ? "create it" : "open it", errno);
}

Result<> write_all(const std::string& path, const FileDescriptor& file, std::string_view text) {
  if (!write_all_at(file.get(), std::as_bytes(std::span(text)), 0)) return cannot(path, "write it", errno);
  return {};
}

}  // namespace

Result<std::string> read_owned_file(const std::string& path, FileTrust trust) {
  const auto file = open_file(path, O_RDONLY);
  if (!file) return std::unexpected(file.error());
  struct stat is{};
  if (::fstat(file->get(), &is) != 0) return cannot(path, "look at it", errno);
  if (auto good = judge(path, is, trust); !good) return std::unexpected(std::move(good.error()));
  std::string text(static_cast<std::size_t>(is.st_size), '\0');
  std::size_t length = 0;
  while (length < text.size()) {
    const ssize_t got = ::read(file->get(), text.data() + length, text.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot(path, "read it", errno);
    if (got == 0) break;
    length += static_cast<std::size_t>(got);
  }
  text.resize(length);
  return text;
}

Result<> create_secret_file(const std::string& path, std::string_view text) {
  const auto file = open_file(path, O_WRONLY | O_CREAT | O_EXCL);
  if (!file) return std::unexpected(file.error());
  Result<> written = write_all(path, *file, text);
  if (!written) ::unlink(path.c_str());
  return written;
}

// For a file opened with O_APPEND pwrite() appends whatever its offset.
Result<> append_to_file(const std::string& path, std::string_view line) {
  const auto file = open_file(path, O_WRONLY | O_APPEND);
  if (!file) return std::unexpected(file.error());
  return write_all(path, *file, line);
}

}  // namespace fairlead::base
