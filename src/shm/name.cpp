#include "shm/name.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include <fmt/format.h>

namespace fairlead::shm {
namespace {

constexpr std::string_view kPrefix = "fairlead-", kSuffix = ".shm", kNew = ".fairlead-new-";

// A loopback address names one engine per network namespace, but a shared directory serves all namespaces.
std::string engine_name(const base::SocketAddress& address, bool is_shared) {
  struct stat space{};
  if (!is_shared || !address.is_loopback() || ::stat("/proc/self/ns/net", &space) != 0)
    return fmt::format("{}{}{}", kPrefix, address.to_string(), kSuffix);
  return fmt::format("{}{}-{}{}", kPrefix, address.to_string(), space.st_ino, kSuffix);
}

}  // namespace

Result<Name> Name::of(const base::SocketAddress& address, const std::string& directory) {
  if (directory.empty()) return make(engine_name(address, false), true);
  return make(fmt::format("{}/{}", directory, engine_name(address, true)), false);
}

Result<Name> Name::of_new(const std::string& directory) {
  std::uint64_t number = 0;
  if (::getentropy(&number, sizeof number) != 0)
    return std::unexpected(Error{Status::system, errno, "no random bits for the name of a socket"});
  return make(fmt::format("{}/{}{:x}", directory, kNew, number), false);
}

bool Name::is_new(std::string_view file_name) {
  return file_name.starts_with(kNew);
}

bool Name::is_engines(std::string_view file_name) {
  return file_name.starts_with(kPrefix) && file_name.ends_with(kSuffix);
}

Result<Name> Name::make(const std::string& text, bool is_abstract) {
  Name name;
  name.text_ = is_abstract ? fmt::format("@{}", text) : text;
  name.is_abstract_ = is_abstract;
  name.address_.sun_family = AF_UNIX;
  if (text.size() + 1 > sizeof name.address_.sun_path) {
    return std::unexpected(
        Error{Status::invalid, 0,
              fmt::format("'{}' is too long for a Unix socket: use a shorter path for it (the socket of fairleadd, or "
                          "shm_directory)",
                          text)});
  }
  std::memcpy(name.address_.sun_path + (is_abstract ? 1 : 0), text.data(), text.size());
  name.length_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + text.size() + 1);
  return name;
}

Error Name::failed(std::string_view what) const {
  const int number = errno;
  const Status status = number == EADDRINUSE                         ? Status::in_use
                        : number == ECONNREFUSED || number == ENOENT ? Status::refused
                        : number == EAGAIN                           ? Status::again
                                                                     : Status::system;
  const std::string_view remedy = number == EMFILE ? ": raise the limit of open files (ulimit -n)" : "";
  return {status, number,
          fmt::format("cannot {} the Unix socket {}: {}{}", what, text_, std::strerror(number), remedy)};
}

}  // namespace fairlead::shm
