#pragma once
// The keys of one epoch of a session: one for each direction, from the handshake's split. A segment's nonce is the
// direction's random start xor the segment's number. No number is used twice: a resent segment is sealed again under a
// new number.

#include <memory>

#include "seal/aead.hpp"
#include "seal/noise_handshake.hpp"
#include "seal/replay_window.hpp"
#include "seal/session_state.hpp"

namespace fairlead::seal {

/// Result of opening a sealed segment.
enum class Opened : std::uint8_t { ok, unknown_epoch, replayed, bad_tag };

class EpochKeys {
 public:
  EpochKeys(const NoiseSymmetricState::Split& split, NoiseRole role, AeadMaker maker);
  /// Continues with saved keys, in the next program in this process.
  EpochKeys(const EpochState& saved, AeadMaker maker);
  EpochState save() const;

  std::uint64_t take_number() { return next_number_++; }
  void seal(std::uint64_t number, Bytes associated, std::span<const iovec> plain, std::byte* output);
  Opened open(std::uint32_t number_low, Bytes associated, Bytes sealed, std::byte* output);

  /// Use of these keys so far, in both directions.
  std::uint64_t segments() const { return next_number_ + opened_; }
  std::uint64_t bytes() const { return bytes_; }
  bool has_opened() const { return opened_ != 0; }

 private:
  struct Direction {
    DirectionSecret secret;
    std::unique_ptr<Aead> aead;
    Direction(const DirectionSecret& its, AeadMaker maker);
    Nonce nonce(std::uint64_t number) const;
  };

  Direction ours_, theirs_;
  std::uint64_t next_number_ = 0;
  std::uint64_t opened_ = 0;
  std::uint64_t bytes_ = 0;
  ReplayWindow window_;
};

}  // namespace fairlead::seal
