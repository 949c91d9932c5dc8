#include "tools/base/version.hpp"

#include <fmt/format.h>

namespace fairlead::tools {
namespace {

#if defined(__clang__)
constexpr std::string_view kCompiler = "clang " __clang_version__;
#else
constexpr std::string_view kCompiler = "GCC " __VERSION__;
#endif

}  // namespace

std::string version_text() {
  return fmt::format("fairlead {} ({})", FAIRLEAD_VERSION, kCompiler);
}

}  // namespace fairlead::tools
