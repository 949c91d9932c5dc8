#pragma once
// ENSURE checks internal invariants, also in release builds; it never guards against input (docs/contributing.md).

#include <fmt/format.h>

#include <string_view>

namespace fairlead::base {

/// Prints the broken invariant and its place to standard error, and aborts.
[[noreturn]] void fail_ensure(const char* file, int line, const char* condition, std::string_view detail);

}  // namespace fairlead::base

#define ENSURE(condition, ...)                                                                   \
  do {                                                                                           \
    if (!(condition)) [[unlikely]]                                                               \
      ::fairlead::base::fail_ensure(__FILE__, __LINE__, #condition, ::fmt::format(__VA_ARGS__)); \
  } while (false)
