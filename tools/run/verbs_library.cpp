#include "tools/run/verbs_library.hpp"

namespace fairlead::tools {

std::filesystem::path verbs_library() {
  std::error_code failed;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", failed);
  const auto prefix = self.parent_path().parent_path();
  return prefix / FAIRLEAD_IBVERBS_FOLDER / "libibverbs.so.1";
}

}  // namespace fairlead::tools
