#include <fairlead/am/domain.hpp>

#include <algorithm>

#include "am/domain_state.hpp"
#include "base/socket_address.hpp"
#include "host/attach.hpp"

namespace fairlead::am {

Result<Domain> Domain::open(const DomainSettings& settings) {
  auto options = engine::EngineOptions::from_environment();
  if (!options) return std::unexpected(std::move(options.error()));
  for (const auto& [name, value] : settings.engine) {
    if (auto set = options->set(name, value); !set) return std::unexpected(std::move(set.error()));
  }
  const auto local = base::SocketAddress::from_ip(settings.ip, 0);
  if (!local) return std::unexpected(local.error());
  auto core = host::attach(*local, *options, host::Use::active_messages);
  if (!core) return std::unexpected(std::move(core.error()));
  auto state = std::make_shared<DomainState>();
  state->ports = (*core)->active_ports();
  if (state->ports == nullptr) {
    return std::unexpected(Error{Status::not_supported, 0, "this engine has no active messages: use another"});
  }
  state->core = std::move(*core);
  state->request_timeout = settings.request_timeout;
  state->poll_max = std::max(settings.poll_max, 1U);
  return Domain(std::move(state));
}

void Domain::leave() {
  if (!state_->is_inherited()) state_->core->take_leave();
}

}  // namespace fairlead::am
