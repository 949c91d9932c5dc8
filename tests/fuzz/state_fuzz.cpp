// The saved state of a host engine, or of one of its engines, as a previous program would leave it. Reading stays
// within the bytes. The state is refused, or gives an engine whose invariants hold. A host engine's state is given
// without its header, because a random checksum would never be valid.

#include <chrono>
#include <cstdint>
#include <span>

#include "base/ensure.hpp"
#include "base/saved.hpp"
#include "engine/handover.hpp"
#include "host/service_state.hpp"
#include "path/sim_network.hpp"

namespace {

using namespace fairlead;

const base::Instant kNow{std::chrono::hours(1)};

engine::EngineOptions small_tables() {
  engine::EngineOptions options;
  ENSURE(options.set(engine::Option::operations_max, 512).has_value(), "operations_max");
  ENSURE(options.set(engine::Option::peers_max, 16).has_value(), "peers_max");
  return options;
}

void restore(engine::EngineState state) {
  static const engine::EngineOptions options = small_tables();
  for (std::size_t i = 0; i < state.fixed_options.size(); ++i)
    state.fixed_options[i] = options.get(engine::EngineState::kFixedOptions[i]);
  path::SimNetwork network(1);
  const auto address = base::SocketAddress::from_ip("10.0.0.1", 20480).value();
  engine::Engine engine(network.attach(address, {}).value(), address, options, state.epoch, state.seed);
  if (!engine::Handover(engine).restore(state, kNow)) return;
  engine.check();
  for (int pass = 0; pass < 3; ++pass) engine.progress(kNow + std::chrono::milliseconds(pass));
  engine.check();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  (void)host::decode_state(bytes);
  if (const auto whole = host::decode_state(host::with_head(bytes)))
    for (const host::ServedEngineState& served : whole->engines) restore(served.engine);
  engine::EngineState state;
  base::SavedReader reader(bytes);
  reader(state);
  if (reader.is_at_end()) restore(std::move(state));
  return 0;
}
