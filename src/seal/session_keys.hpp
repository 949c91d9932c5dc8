#pragma once
// The keys of a session, epoch by epoch. A new handshake inside the session makes the next epoch's keys, and the change
// loses no segment:
//
//   1. The responder answers, keeps the next epoch's keys in addition, and opens with both.
//   2. The initiator, on the answer, seals with the new keys, and opens with both.
//   3. The first segment that the responder opens with the new keys proves that both sides have them. From then on the
//      responder seals with them, too.
//
// The previous keys stay for segments still in flight, until drop_previous() or the next change. Keys are wiped when
// they are dropped.

#include <memory>

#include "seal/epoch_keys.hpp"

namespace fairlead::seal {

class SessionKeys {
 public:
  /// Mask of the epoch bits that a segment carries.
  static constexpr std::uint8_t kEpochMask = 3;

  explicit SessionKeys(std::unique_ptr<EpochKeys> first) : current_(std::move(first)) {}
  /// Continues with saved keys, in the next program in this process.
  SessionKeys(const SessionKeysState& saved, AeadMaker maker);
  SessionKeysState save() const;

  /// The keys and the number of the next segment.
  struct Mark {
    std::uint8_t epoch = 0;  // its lower bits
    std::uint64_t number = 0;
  };
  Mark next_mark() { return {epoch_bits(), current_->take_number()}; }
  /// Seals with the mark just taken; `output` has kTagBytes more than `plain`.
  void seal(const Mark& mark, Bytes associated, std::span<const iovec> plain, std::byte* output) {
    current_->seal(mark.number, associated, plain, output);
  }
  Opened open(std::uint8_t epoch_bits, std::uint32_t number_low, Bytes associated, Bytes sealed, std::byte* output);

  /// Responder: from now on the peer may use these keys, too.
  void offer(std::unique_ptr<EpochKeys> next) { next_ = std::move(next); }
  /// Initiator: the peer has these keys; use them.
  void advance(std::unique_ptr<EpochKeys> next);
  /// Returns whether another change may begin: the peer has shown that it uses the current keys.
  bool is_settled() const { return !next_ && (epoch_ == 0 || current_->has_opened()); }
  /// Drops the previous keys when none of their segments can be in flight any more. Keeps them until the peer has used
  /// the current ones.
  void drop_previous();

  std::uint64_t epoch() const { return epoch_; }
  const EpochKeys& current() const { return *current_; }
  bool has_previous() const { return previous_ != nullptr; }
  bool can_drop_previous() const { return previous_ && current_->has_opened(); }

 private:
  std::uint8_t epoch_bits() const { return static_cast<std::uint8_t>(epoch_ & kEpochMask); }

  std::uint64_t epoch_ = 0;
  std::unique_ptr<EpochKeys> current_, previous_, next_;
};

}  // namespace fairlead::seal
