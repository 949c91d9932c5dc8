#include "shm/users.hpp"

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include <fmt/format.h>

namespace fairlead::shm {
namespace {

std::string read_all(const char* file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace

std::optional<std::uint32_t> Users::shared_number(std::string_view map, std::uint32_t overflow) {
  constexpr std::uint64_t kAll = 0xffff'ffff;  // number of possible user ids; the last number is not one
  std::uint64_t known = 0, inside = 0, outside = 0, count = 0;
  std::istringstream lines{std::string(map)};
  while (lines >> inside >> outside >> count) known += count;
  return known >= kAll ? std::nullopt : std::optional(overflow);
}

// Without /proc, some users may be indistinguishable: shared_ is then set.
Users::Users() {
  std::uint32_t overflow = 65534;
  std::istringstream(read_all("/proc/sys/kernel/overflowuid")) >> overflow;
  shared_ = shared_number(read_all("/proc/self/uid_map"), overflow);
}

bool Users::is_own(const Credentials& who) const {
  return who.user == ::geteuid() && who.user != shared_;
}

std::string Users::reason(const Credentials& who) const {
  if (who.user == shared_ && who.user == ::geteuid()) {
    return fmt::format(
        "has user {}, which the kernel reports for all users unknown in this user namespace, and this process has it "
        "too: run as another user, or set FAIRLEAD_SHM_USERS=all for both",
        who.user);
  }
  return fmt::format(
      "belongs to user {}, this process to user {}: run both as one user, or set FAIRLEAD_SHM_USERS=all for both",
      who.user, ::geteuid());
}

}  // namespace fairlead::shm
