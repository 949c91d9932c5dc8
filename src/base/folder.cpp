#include "base/folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "base/shown.hpp"

namespace fairlead::base {
namespace {

std::unexpected<Error> refused(std::string_view path, std::string_view why) {
  return std::unexpected(Error{Status::not_permitted, 0, fmt::format("{} {}", shown(path, kPathShown), why)});
}

std::unexpected<Error> folder_failed(std::string_view path, std::string_view what) {
  const int number = errno;
  return std::unexpected(Error{Status::system, number,
                               fmt::format("cannot {} {}: {}", what, shown(path, kPathShown), std::strerror(number))});
}

struct stat facts_of(int file) {
  struct stat facts{};
  if (::fstat(file, &facts) != 0) facts = {};
  return facts;
}

// The owner of / controls everything below it. In a user namespace that does not map root, that is not user 0.
bool is_trusted(uid_t owner) {
  struct stat root{};
  return owner == 0 || owner == ::geteuid() || (::stat("/", &root) == 0 && owner == root.st_uid);
}

/// Explains why others could replace a folder in this one; empty if they cannot.
std::string danger_in(const struct stat& folder) {
  if (!is_trusted(folder.st_uid)) return fmt::format("belongs to user {}", folder.st_uid);
  if ((folder.st_mode & S_IWOTH) != 0 && (folder.st_mode & S_ISVTX) == 0) return "may be changed by everybody";
  return {};
}

// Opens the next folder of a path; on failure errno tells why.
FileDescriptor step(int from, const char* name) {
  return FileDescriptor(::openat(from, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

bool is_link(int folder, const char* name) {
  struct stat facts{};
  return ::fstatat(folder, name, &facts, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(facts.st_mode);
}

/// "/a/b" of "/a/b/c", and "c".
std::pair<std::string, std::string> split(const std::string& path) {
  const auto end = path.rfind('/');
  if (end == std::string::npos) return {".", path};
  return {end == 0 ? "/" : path.substr(0, end), path.substr(end + 1)};
}

}  // namespace

Result<FileDescriptor> open_folder(const std::string& path) {
  std::string so_far = path.starts_with('/') ? "/" : ".";
  FileDescriptor here = step(AT_FDCWD, so_far.c_str());
  for (std::size_t at = 0; here.is_open();) {
    if (const std::string danger = danger_in(facts_of(here.get())); !danger.empty())
      return refused(so_far, fmt::format("{}: name a folder of your own", danger));
    at = path.find_first_not_of('/', at);
    if (at == std::string::npos) return here;
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string name = path.substr(at, end - at);
    so_far = path.substr(0, end);
    FileDescriptor next = step(here.get(), name.c_str());
    if (!next.is_open()) {
      const int number = errno;
      if (is_link(here.get(), name.c_str())) return refused(so_far, "is a link: name the folder that it leads to");
      errno = number;
    }
    here = std::move(next);
    at = end;
  }
  return folder_failed(so_far, "open the folder");
}

Result<FileDescriptor> open_to_append(const std::string& path) {
  const auto [folder_path, name] = split(path);
  auto folder = open_folder(folder_path);
  if (!folder) return folder;
  // Non-blocking: the path may lead to a pipe.
  FileDescriptor file(::openat(folder->get(), name.c_str(),
                               O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600));
  if (!file.is_open()) {
    if (errno == ELOOP) return refused(path, "is a symbolic link: name the file that it points to");
    return folder_failed(path, "append to");
  }
  const struct stat facts = facts_of(file.get());
  if (!S_ISREG(facts.st_mode)) return refused(path, "is not a plain file: name one");
  if (facts.st_uid != ::geteuid())
    return refused(path, fmt::format("belongs to user {}: name another file", facts.st_uid));
  if (facts.st_nlink != 1) return refused(path, "has a second hard link, perhaps of another user: name another file");
  return file;
}

Result<PrivateFolder> private_folder(const std::string& parent, const std::string& name, std::string& complaint) {
  const auto above = open_folder(parent);
  if (!above) return std::unexpected(above.error());
  const std::string path = fmt::format("{}/{}", parent, name);
  ::mkdirat(above->get(), name.c_str(), 0700);
  const FileDescriptor folder = step(above->get(), name.c_str());
  struct stat facts{};
  if (folder.is_open()) facts = facts_of(folder.get());
  const bool is_ours = folder.is_open() && facts.st_uid == ::geteuid();
  if (is_ours && (facts.st_mode & 077) == 0) return PrivateFolder{path, false};

  std::string made = fmt::format("{}/{}-XXXXXX", parent, name);
  if (::mkdtemp(made.data()) == nullptr) return folder_failed(made, "make the folder");
  const std::string why = !folder.is_open() ? "cannot be used"
                          : is_ours         ? "is open to others"
                                            : fmt::format("was made by user {}", facts.st_uid);
  complaint = fmt::format("{} {}, so {} is used instead: have it removed", shown(path, kPathShown), why,
                          shown(made, kPathShown));
  return PrivateFolder{made, true};
}

}  // namespace fairlead::base
