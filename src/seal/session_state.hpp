#pragma once
// The keys of a session for the next program in this process. Secrets are wiped on destruction. The bytes that they are
// saved to are never written to a file; their owner wipes them.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "seal/aead.hpp"
#include "seal/primitives.hpp"
#include "seal/replay_window.hpp"

namespace fairlead::seal {

/// The key of a direction, and the start of its nonces.
using DirectionSecret = Secret<CipherKey::size() + kNonceBytes>;

struct EpochState {
  DirectionSecret ours, theirs;
  std::uint64_t next_number = 0, opened = 0, bytes = 0;
  ReplayWindow window;
};

struct SessionKeysState {
  std::uint64_t epoch = 0;
  EpochState current;
  std::optional<EpochState> previous, next;
};

template <typename Archive, std::size_t kBytes>
void fields(Archive& archive, Secret<kBytes>& secret) {
  for (std::byte& part : secret.bytes()) archive(part);
}
template <typename Archive>
void fields(Archive& archive, EpochState& epoch) {
  archive(epoch.ours, epoch.theirs, epoch.next_number, epoch.opened, epoch.bytes, epoch.window);
}
template <typename Archive>
void fields(Archive& archive, SessionKeysState& keys) {
  archive(keys.epoch, keys.current, keys.previous, keys.next);
}

}  // namespace fairlead::seal
