// The saved state of a host engine, or of one of its engines, as a previous program would leave it. Reading stays
// within the bytes. The state is refused, or gives an engine whose invariants hold. A host engine's state is given
// without its header, because a random checksum would never be valid.

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/ensure.hpp"
#include "base/saved.hpp"
#include "engine/handover.hpp"
#include "host/service_state.hpp"
#include "link/seal_settings.hpp"
#include "path/sim_network.hpp"
#include "seal/libcrypto.hpp"

namespace {

using namespace fairlead;

const base::Instant kNow{std::chrono::hours(1)};

engine::EngineOptions small_tables() {
  engine::EngineOptions options;
  ENSURE(options.set(engine::Option::operations_max, 512).has_value(), "operations_max");
  ENSURE(options.set(engine::Option::peers_max, 16).has_value(), "peers_max");
  return options;
}

/// Seals, but requires it of no peer, so sessions of both kinds can be restored.
link::SealSettings sealing() {
  ENSURE(seal::load_libcrypto().has_value(), "libcrypto");
  static const auto ring = [] {
    std::vector<seal::Key> keys(1);
    return std::make_shared<const seal::Keyring>(seal::Keyring::of_secrets(std::move(keys)));
  }();
  return {.ring = ring, .required = {}, .random = seal::RandomSource::of_seed(1)};
}

void restore(engine::EngineState state) {
  static const engine::EngineOptions options = small_tables();
  for (std::size_t i = 0; i < state.fixed_options.size(); ++i)
    state.fixed_options[i] = options.get(engine::EngineState::kFixedOptions[i]);
  path::SimNetwork network(1);
  const auto address = base::SocketAddress::from_ip("10.0.0.1", 20480).value();
  engine::Engine engine(network.attach(address, {}).value(), address, options, state.epoch, state.seed, nullptr,
                        sealing());
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
