// The tables of an endpoint: peers by index, and the index of each arrival's source.

#include <algorithm>

#include "am/bundle_state.hpp"
#include "am/endpoint_state.hpp"

namespace fairlead::am {

EndpointState::EndpointState(BundleState& of, engine::PortHandle opened, std::uint32_t its_number)
    : bundle(&of), core(*of.domain->core), ports(*of.domain->ports), port(opened), number(its_number) {
  translations.resize(kHandlers);
  losses_seen = ports.losses();
}

EndpointState::~EndpointState() {
  core.close_port(port);
}

Name EndpointState::name() const {
  const base::SocketAddress address = core.address();
  return {address.ip, address.port, number};
}

bool EndpointState::find_source(const engine::RemotePort& source, std::uint32_t& index) const {
  const auto found = sources.find(source);
  if (found == sources.end()) return false;
  index = found->second;
  return true;
}

Status EndpointState::map(std::uint32_t index, const Name& peer, std::uint64_t key) {
  if (index >= translations.size()) return Status::invalid;
  Translation& translation = translations[index];
  if (translation.is_used) return Status::in_use;
  translation = {.is_used = true,
                 .peer = {{.ip = peer.ip, .scope = core.address().scope, .port = peer.udp_port}, peer.endpoint},
                 .key = key};
  sources.emplace(translation.peer, index);  // keeps the first index of a peer that has several
  return Status::ok;
}

Status EndpointState::unmap(std::uint32_t index) {
  if (index >= translations.size()) return Status::invalid;
  Translation& translation = translations[index];
  if (!translation.is_used) return Status::not_available;
  for (std::uint32_t slot = 0; slot < exchanges.size(); ++slot) {
    if (!exchanges[slot].is_open || exchanges[slot].translation != index) continue;
    close(slot);
    release_if_over(slot);
  }
  if (const auto found = sources.find(translation.peer); found != sources.end() && found->second == index) {
    sources.erase(found);
    for (std::uint32_t i = 0; i < translations.size(); ++i) {
      if (i != index && translations[i].is_used && translations[i].peer == translation.peer) {
        sources.emplace(translation.peer, i);
        break;
      }
    }
  }
  translation = {};
  return Status::ok;
}

Status EndpointState::resize(std::uint32_t count) {
  if (count > kTranslationsMax) return Status::invalid;
  count = std::max<std::uint32_t>(count, kHandlers);
  for (std::size_t i = count; i < translations.size(); ++i) {
    if (translations[i].is_used) return Status::in_use;
  }
  translations.resize(count);
  return Status::ok;
}

}  // namespace fairlead::am
