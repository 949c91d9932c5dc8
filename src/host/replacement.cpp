#include "host/replacement.hpp"

#include <utility>

#include "host/call.hpp"

namespace fairlead::host {

Result<std::string> ask_for_replacement(const std::string& file) {
  const auto name = socket_name(file);
  if (!name) return std::unexpected(name.error());
  shm::Users users;
  const auto socket = shm::Socket::connect(*name, users);
  if (!socket) return std::unexpected(socket.error());
  auto answered = make_call(*socket, {.kind = static_cast<std::uint32_t>(Call::Kind::replace)});
  if (!answered) return std::unexpected(std::move(answered.error()));
  return std::move(answered->text);
}

}  // namespace fairlead::host
