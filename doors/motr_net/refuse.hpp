#pragma once
// What Motr asserts is refused here, with a line that says why (docs/motr.md).

#include <cerrno>
#include <string_view>

namespace fairlead::motr {

/// -error; m0_net_last_error() of this thread is the line.
int refuse(int error, std::string_view why) noexcept;
/// Whether one of them is; then m0_net_last_error() says so.
template <typename... Pointers>
bool is_any_null(const Pointers*... pointers) noexcept {
  const bool is = ((pointers == nullptr) || ...);
  if (is) refuse(EINVAL, "a pointer is null");
  return is;
}
/// The same with the reason of the last call of <fairlead/net.h>.
int refuse_as_told(int error) noexcept;

}  // namespace fairlead::motr
