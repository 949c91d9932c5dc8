#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "doors/amudp/library.hpp"

int AMUDP_PoliteSync = 0;
int AMX_VerboseErrors = 0;
int AMX_SilentMode = 0;
const char* AMX_ProcessLabel = "amudp";

void AMX_FatalErr(const char* text, ...) {
  std::fprintf(stderr, "*** %s: fatal: ", AMX_ProcessLabel);
  va_list values;
  va_start(values, text);
  std::vfprintf(stderr, text, values);
  va_end(values);
  std::fputc('\n', stderr);
  std::abort();
}

namespace fairlead::amudp {

int fail(int code, const char* call, const char* why) {
  static constexpr const char* kNames[] = {"AM_OK",           "AM_ERR_NOT_INIT", "AM_ERR_BAD_ARG",
                                           "AM_ERR_RESOURCE", "AM_ERR_NOT_SENT", "AM_ERR_IN_USE"};
  if (AMX_VerboseErrors) std::fprintf(stderr, "%s: %s answers %s: %s\n", AMX_ProcessLabel, call, kNames[code], why);
  return code;
}

int code_of(Status status) {
  switch (status) {
    case Status::ok:
    case Status::timed_out:
      return AM_OK;
    case Status::invalid:
    case Status::not_available:
      return AM_ERR_BAD_ARG;
    case Status::again:
      return AM_ERR_IN_USE;
    default:
      return AM_ERR_RESOURCE;
  }
}

}  // namespace fairlead::amudp
