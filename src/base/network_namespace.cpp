#include "base/network_namespace.hpp"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "base/ensure.hpp"

namespace fairlead::base {
namespace {

std::unexpected<Error> failed(const std::string& what, const std::string& remedy = {}) {
  const int number = errno;
  std::string message = "cannot " + what + ": " + std::strerror(number) + remedy;
  return std::unexpected(Error{Status::system, number, std::move(message)});
}

Result<FileDescriptor> own_network() {
  FileDescriptor network(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!network.is_open()) return failed("open the network of this thread", ": is /proc mounted?");
  return network;
}

void return_to(const FileDescriptor& home) {
  ENSURE(::setns(home.get(), CLONE_NEWNET) == 0, "no way back into the network we came from: {}", std::strerror(errno));
}

Result<> write_file(const char* name, const std::string& text) {
  const FileDescriptor file(::open(name, O_WRONLY | O_CLOEXEC));
  if (!file.is_open() || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return failed(std::string("write to ") + name);
  return {};
}

}  // namespace

Result<> leave_host_network() {
  if (::unshare(CLONE_NEWNET) == 0) return {};
  const auto user = std::to_string(::geteuid()), group = std::to_string(::getegid());
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
    return failed("make a network namespace",
                  ": run it as root, in a container with CAP_SYS_ADMIN, or allow user namespaces (sysctl "
                  "user.max_user_namespaces, kernel.unprivileged_userns_clone, "
                  "kernel.apparmor_restrict_unprivileged_userns)");
  // Root inside, this user outside: programs started from here keep the right to change this network.
  if (auto written = write_file("/proc/self/setgroups", "deny"); !written) return written;
  if (auto written = write_file("/proc/self/uid_map", "0 " + user + " 1"); !written) return written;
  return write_file("/proc/self/gid_map", "0 " + group + " 1");
}

Result<FileDescriptor> make_network() {
  const auto home = own_network();
  if (!home) return std::unexpected(home.error());
  if (::unshare(CLONE_NEWNET) != 0) return failed("make a network namespace", ": leave the host's network first");
  auto made = own_network();
  return_to(*home);
  return made;
}

Result<NetworkVisit> NetworkVisit::enter(int network) {
  if (network < 0) return NetworkVisit(FileDescriptor());
  auto home = own_network();
  if (!home) return std::unexpected(std::move(home.error()));
  if (::setns(network, CLONE_NEWNET) != 0) return failed("enter a network namespace");
  return NetworkVisit(std::move(*home));
}

NetworkVisit::~NetworkVisit() {
  if (home_.is_open()) return_to(home_);
}

}  // namespace fairlead::base
