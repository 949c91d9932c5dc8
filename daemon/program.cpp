#include "daemon/program.hpp"

#include <fcntl.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

namespace fairlead::daemon {
namespace {

constexpr const char* kThisProgram = "/proc/self/exe";

bool is_same_file(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

bool is_this_program(const std::string& path) {
  struct stat named{}, running{};
  return ::stat(path.c_str(), &named) == 0 && ::stat(kThisProgram, &running) == 0 && is_same_file(named, running);
}

bool begins_with_interpreter(const std::string& name) {
  const base::FileDescriptor file(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::array<char, 2> first{};
  return file.is_open() && ::read(file.get(), first.data(), first.size()) == ssize_t{first.size()} &&
         std::string_view(first.data(), first.size()) == "#!";
}

std::string name_of(const base::FileDescriptor& file) {
  return fmt::format("/proc/self/fd/{}", file.get());
}

}  // namespace

std::string Program::own_path(const std::string& given, bool is_successor) {
  if (is_successor && given.starts_with('/')) return given;
  const auto* const executed = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
  std::error_code error;
  // Not the path that the kernel shows: that one has no symbolic links left, and an upgrade may change a link.
  for (const std::string& path : {std::string(executed == nullptr ? "" : executed), given})
    if (path.contains('/') && !path.starts_with("/proc/") && !path.starts_with("/dev/fd/") && is_this_program(path))
      return std::filesystem::absolute(path, error);
  constexpr std::string_view kGone = " (deleted)";
  std::string path = std::filesystem::read_symlink(kThisProgram, error);
  if (path.ends_with(kGone)) path.resize(path.size() - kGone.size());
  return path;
}

Result<Program> Program::open(std::string path) {
  base::FileDescriptor file(::open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat facts{};
  if (!file.is_open() || ::fstat(file.get(), &facts) != 0) {
    const int number = errno;
    return std::unexpected(
        Error{Status::system, number, fmt::format("cannot start {}: {}", path, std::strerror(number))});
  }
  const bool is_script = begins_with_interpreter(name_of(file));
  return Program(std::move(path), std::move(file), facts, is_script);
}

std::string Program::executable() const {
  return is_script_ ? path_ : name_of(file_);
}

bool Program::is_unchanged() const {
  struct stat now{};
  const int looked = is_script_ ? ::stat(path_.c_str(), &now) : ::fstat(file_.get(), &now);
  return looked == 0 && is_same_file(now, facts_) && now.st_size == facts_.st_size &&
         now.st_mtim.tv_sec == facts_.st_mtim.tv_sec && now.st_mtim.tv_nsec == facts_.st_mtim.tv_nsec;
}

}  // namespace fairlead::daemon
