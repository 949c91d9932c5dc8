#pragma once
// The keys of a session, epoch after epoch. A new handshake inside the session makes those of the next epoch, and no
// segment is lost by the change:
//
//   the responder of it answers, keeps the next epoch's keys beside and opens with both;
//   the initiator, who has the answer, seals with the new ones from then on, and opens with both;
//   the first segment that the responder opens with the new ones tells that both have them: it seals with them, too.
//
// The keys before are kept for what is still on the way, until drop_previous() or the next change. Each is wiped as it
// goes.

#include <memory>

#include "seal/epoch_keys.hpp"

namespace fairlead::seal {

class SessionKeys {
 public:
  /// How many bits of the epoch a segment carries.
  static constexpr std::uint8_t kEpochMask = 3;

  explicit SessionKeys(std::unique_ptr<EpochKeys> first) : current_(std::move(first)) {}

  /// Under which keys the next segment goes.
  struct Mark {
    std::uint8_t epoch = 0;  // its lower bits
    std::uint64_t number = 0;
  };
  Mark next_mark() { return {epoch_bits(), current_->take_number()}; }
  /// With the mark just taken; `output` has kTagBytes more than `plain`.
  void seal(const Mark& mark, Bytes associated, std::span<const iovec> plain, std::byte* output) {
    current_->seal(mark.number, associated, plain, output);
  }
  Opened open(std::uint8_t epoch_bits, std::uint32_t number_low, Bytes associated, Bytes sealed, std::byte* output);

  /// As responder: from now on the peer may use these.
  void offer(std::unique_ptr<EpochKeys> next) { next_ = std::move(next); }
  /// As initiator: the peer has them.
  void advance(std::unique_ptr<EpochKeys> next);
  /// Whether a further change may begin: the peer has shown that it uses the current keys.
  bool is_settled() const { return !next_ && (epoch_ == 0 || current_->has_opened()); }
  /// Nothing sealed with them can be on the way any more; what the peer has not left yet stays.
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
