#include "sim/machine.hpp"

#include <poll.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/ensure.hpp"
#include "embedded/open_shm.hpp"

namespace fairlead::sim {

Machine::Machine() : folder_(std::filesystem::temp_directory_path() / "fairlead_machine_XXXXXX") {
  ENSURE(::mkdtemp(folder_.data()) != nullptr, "no folder {} for the sockets of a simulated machine", folder_);
}

Machine::~Machine() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::unique_ptr<shm::Transport> Machine::open_shm(const base::SocketAddress& own, std::uint64_t epoch,
                                                  engine::EngineOptions options) const {
  const auto set = options.set("shm_directory", folder_);
  ENSURE(set.has_value(), "{}", set.error().message);
  auto shm = embedded::open_shm(own, epoch, options);
  ENSURE(shm.has_value() && *shm != nullptr, "no shared memory for a simulated process{}",
         shm.has_value() ? std::string() : ": " + shm.error().message);
  return std::move(*shm);
}

bool Machine::is_rung(engine::Engine& engine) {
  pollfd doorbell{.fd = engine::shm_descriptor(engine), .events = POLLIN, .revents = 0};
  return ::poll(&doorbell, 1, 0) == 1;
}

bool Machine::has_news(engine::Engine& engine) {
  const bool may_sleep = engine.arm();
  engine.disarm();
  return !may_sleep || is_rung(engine);
}

}  // namespace fairlead::sim
