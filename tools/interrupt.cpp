#include "tools/interrupt.hpp"

#include <csignal>

namespace fairlead::tools {
namespace {

volatile std::sig_atomic_t interrupted = 0;

}  // namespace

void catch_interrupts() {
  struct sigaction action{};
  action.sa_handler = [](int) { interrupted = 1; };
  action.sa_flags = SA_RESETHAND;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool is_interrupted() noexcept {
  return interrupted != 0;
}

}  // namespace fairlead::tools
