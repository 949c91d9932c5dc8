#include "doors/motr_net/refuse.hpp"

#include <fairlead/net.h>

#include <algorithm>
#include <array>

#include "doors/motr_net/include/motr_net.h"

namespace fairlead::motr {
namespace {

constinit thread_local std::array<char, 256> last_line{};

}  // namespace

int refuse(int error, std::string_view why) noexcept {
  const std::size_t length = std::min(why.size(), last_line.size() - 1);
  std::copy_n(why.data(), length, last_line.data());
  last_line[length] = '\0';
  return -error;
}

int refuse_as_told(int error) noexcept {
  fairlead_net_explain_last(last_line.data(), last_line.size());
  return -error;
}

}  // namespace fairlead::motr

const char* m0_net_last_error(void) {
  return fairlead::motr::last_line.data();
}
