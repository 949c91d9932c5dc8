#include <fairlead/error.hpp>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace fairlead {
namespace {

struct StatusRow {
  std::string_view text;
  int number;
};

// In the order of the enumerators of Status.
constexpr std::array<StatusRow, 21> kStatusTable{{
    {"ok", 0},
    {"again", EAGAIN},
    {"canceled", ECANCELED},
    {"timed out", ETIMEDOUT},
    {"deadline already passed", ETIME},
    {"too big", EFBIG},
    {"message too long", EMSGSIZE},
    {"no receive buffer", ENOBUFS},
    {"not permitted", EPERM},
    {"stale", ENOENT},
    {"invalid", EINVAL},
    {"bad state", EBADFD},
    {"peer unreachable", EHOSTUNREACH},
    {"peer silent", ETIMEDOUT},
    {"peer restarted", ECONNRESET},
    {"peer refused", ECONNREFUSED},
    {"out of memory", ENOMEM},
    {"address in use", EADDRINUSE},
    {"address not available", EADDRNOTAVAIL},
    {"not supported", ENOSYS},
    {"system error", EIO},
}};
static_assert(kStatusTable.size() == std::to_underlying(Status::system) + 1);

constexpr StatusRow row(Status status) {
  const auto index = std::to_underlying(status);
  return index < kStatusTable.size() ? kStatusTable[index] : StatusRow{"unknown status", EIO};
}

}  // namespace

int to_errno(Status status) noexcept {
  return row(status).number;
}

std::string_view to_string(Status status) noexcept {
  return row(status).text;
}

void exit_with(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  std::exit(EXIT_FAILURE);
}

}  // namespace fairlead
