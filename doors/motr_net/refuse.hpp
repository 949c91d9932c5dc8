#pragma once
// What Motr asserts is refused here, with a line that says why (docs/motr.md).

#include <string_view>

namespace fairlead::motr {

/// -error; m0_net_last_error() of this thread is the line.
int refuse(int error, std::string_view why) noexcept;
/// The same with the reason of the last call of <fairlead/net.h>.
int refuse_as_told(int error) noexcept;

}  // namespace fairlead::motr
