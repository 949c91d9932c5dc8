#include "host/served_engines.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "embedded/attach.hpp"

namespace fairlead::host {

ServedEngines::~ServedEngines() {
  for (const auto& [address, engine] : engines_) routes_->release(address);
}

std::shared_ptr<ServedEngine> ServedEngines::find(const base::SocketAddress& address) const {
  const auto for_any = for_any_port_.find(address);
  const auto found = engines_.find(for_any != for_any_port_.end() ? for_any->second : address);
  return found != engines_.end() ? found->second : nullptr;
}

bool ServedEngines::is_for_any_port(const base::SocketAddress& address) const {
  return std::ranges::any_of(for_any_port_, [&](const auto& entry) { return entry.second == address; });
}

Result<std::shared_ptr<ServedEngine>> ServedEngines::at(const base::SocketAddress& address) {
  if (auto known = find(address)) return known;
  if (!makes_room()) {
    const bool is_alone = routes_->threads() == 1;
    return std::unexpected(
        Error{Status::no_memory, 0,
              fmt::format("this {} has {} engines, the most it may (--engines-max{}): ask for an address that one of "
                          "them has",
                          is_alone ? "host engine" : "thread of the host engine", engines_.size(),
                          is_alone ? "" : ", divided by --threads")});
  }
  auto core = thread_ == 0 ? embedded::attach_embedded(address, options_) : embedded::attach_another(address, options_);
  if (!core) return std::unexpected(std::move(core.error()));
  auto engine = add(std::move(*core));
  if (engine && address.port == 0) for_any_port_[address] = (*engine)->core->address();
  return engine;
}

Result<std::shared_ptr<ServedEngine>> ServedEngines::restore(std::shared_ptr<embedded::EmbeddedCore> core,
                                                             bool is_for_any_port) {
  base::SocketAddress any_port = core->address();
  any_port.port = 0;
  auto engine = add(std::move(core));
  if (engine && is_for_any_port) for_any_port_[any_port] = (*engine)->core->address();
  return engine;
}

Result<std::shared_ptr<ServedEngine>> ServedEngines::add(std::shared_ptr<embedded::EmbeddedCore> core) {
  const base::SocketAddress address = core->address();
  if (auto known = find(address)) return known;
  const Shares shares(options_.get(engine::Option::operations_max), limits_.applications_max);
  auto engine = std::make_shared<ServedEngine>(ServedEngine{.core = std::move(core), .shares = shares});
  if (!routes_->claim(address, thread_)) {
    return std::unexpected(Error{
        Status::in_use, 0, fmt::format("another thread of the host engine opens {}: try again", address.to_string())});
  }
  engines_[address] = engine;
  return engine;
}

/// An engine stays when its applications have left. It ends when a new engine needs its place.
bool ServedEngines::makes_room() {
  if (engines_.size() < limits_.engines_max) return true;
  const auto idle = std::ranges::find_if(engines_, [](const auto& entry) { return entry.second.use_count() == 1; });
  if (idle == engines_.end()) return false;
  std::erase_if(for_any_port_, [&](const auto& entry) { return entry.second == idle->first; });
  routes_->release(idle->first);
  engines_.erase(idle);
  return true;
}

}  // namespace fairlead::host
