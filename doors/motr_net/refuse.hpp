#pragma once
// Where Motr asserts, this implementation returns an error and a line that explains it (docs/motr.md).

#include <cerrno>
#include <string_view>

namespace fairlead::motr {

/// Returns -error, and stores the line for this thread's m0_net_last_error().
int refuse(int error, std::string_view why) noexcept;
/// Returns whether any of the pointers is null, and if so stores the line for m0_net_last_error().
template <typename... Pointers>
bool is_any_null(const Pointers*... pointers) noexcept {
  const bool is = ((pointers == nullptr) || ...);
  if (is) refuse(EINVAL, "a pointer is null");
  return is;
}
/// Does the same as refuse(), with the reason of the last call of <fairlead/net.h>.
int refuse_as_told(int error) noexcept;

}  // namespace fairlead::motr
