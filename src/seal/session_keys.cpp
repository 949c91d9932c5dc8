#include "seal/session_keys.hpp"

#include <utility>

namespace fairlead::seal {

SessionKeys::SessionKeys(const SessionKeysState& saved, AeadMaker maker)
    : epoch_(saved.epoch), current_(std::make_unique<EpochKeys>(saved.current, maker)) {
  if (saved.previous) previous_ = std::make_unique<EpochKeys>(*saved.previous, maker);
  if (saved.next) next_ = std::make_unique<EpochKeys>(*saved.next, maker);
}

SessionKeysState SessionKeys::save() const {
  SessionKeysState saved{.epoch = epoch_, .current = current_->save(), .previous = {}, .next = {}};
  if (previous_) saved.previous = previous_->save();
  if (next_) saved.next = next_->save();
  return saved;
}

Opened SessionKeys::open(std::uint8_t epoch, std::uint32_t number_low, Bytes associated, Bytes sealed,
                         std::byte* output) {
  if (epoch == epoch_bits()) [[likely]]
    return current_->open(number_low, associated, sealed, output);
  if (next_ && epoch == ((epoch_ + 1) & kEpochMask)) {
    const Opened opened = next_->open(number_low, associated, sealed, output);
    if (opened == Opened::ok) advance(std::move(next_));
    return opened;
  }
  if (previous_ && epoch == ((epoch_ - 1) & kEpochMask)) return previous_->open(number_low, associated, sealed, output);
  return Opened::unknown_epoch;
}

void SessionKeys::advance(std::unique_ptr<EpochKeys> next) {
  previous_ = std::move(current_);
  current_ = std::move(next);
  next_.reset();
  ++epoch_;
}

void SessionKeys::drop_previous() {
  if (can_drop_previous()) previous_.reset();
}

}  // namespace fairlead::seal
