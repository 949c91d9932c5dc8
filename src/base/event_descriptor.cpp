#include "base/event_descriptor.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <cstring>

namespace fairlead::base {

Result<FileDescriptor> open_event_descriptor(std::string_view whose, int flags) {
  FileDescriptor opened(::eventfd(0, EFD_CLOEXEC | flags));
  if (opened.is_open()) return opened;
  const int number = errno;
  return std::unexpected(Error{Status::system, number,
                               fmt::format("no event descriptor for {}: {}: raise the limit of open files (ulimit -n)",
                                           whose, std::strerror(number))});
}

}  // namespace fairlead::base
