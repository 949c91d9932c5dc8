// The invariants of an endpoint while no call is at work in it.

#include <algorithm>
#include <vector>

#include "am/bundle_state.hpp"
#include "am/endpoint_state.hpp"
#include "base/ensure.hpp"

namespace fairlead::am {

void EndpointState::check() {
  std::vector<std::uint32_t> of_translation(translations.size());
  std::size_t open = 0;
  std::uint32_t busy = 0;
  for (std::uint32_t slot = 0; slot < exchanges.size(); ++slot) {
    const Exchange& exchange = exchanges[slot];
    if (!exchange.is_used) continue;
    const bool is_held = std::ranges::find(held, exchanges.name_of(slot)) != held.end();
    ENSURE(exchange.is_open || exchange.is_engine_busy || exchange.is_shown || is_held,
           "endpoint {}: exchange {} is over, and is kept", number, slot);
    busy += exchange.is_engine_busy;
    if (!exchange.is_open) continue;
    ++open;
    ENSURE(exchange.translation < translations.size() && translations[exchange.translation].is_used,
           "endpoint {}: request {} goes to translation {}, which is none", number, slot, exchange.translation);
    ++of_translation[exchange.translation];
  }
  ENSURE(open == outstanding, "endpoint {}: {} requests are outstanding, {} are known", number, open, outstanding);
  ENSURE(busy == events_pending && events_pending <= events_reserved,
         "endpoint {}: the engine has {} messages, {} events are awaited, {} have room", number, busy, events_pending,
         events_reserved);
  for (std::uint32_t index = 0; index < translations.size(); ++index) {
    const Translation& translation = translations[index];
    ENSURE(translation.outstanding == of_translation[index], "endpoint {}: {} requests to translation {}, {} are known",
           number, of_translation[index], index, translation.outstanding);
    const auto source = translation.is_used ? sources.find(translation.peer) : sources.end();
    ENSURE(!translation.is_used || source != sources.end(), "endpoint {}: nobody finds translation {}", number, index);
  }
  for (const auto& [peer, index] : sources)
    ENSURE(index < translations.size() && translations[index].is_used && translations[index].peer == peer,
           "endpoint {}: a source is found at translation {}, which is another's", number, index);
}

}  // namespace fairlead::am
