#pragma once
// The state of a message until it is complete. A request is kept until its reply has come and the engine has released
// its memory; until then it can be sent again. A reply is kept only if the engine could not send or copy it at once.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include <sys/uio.h>

#include <fairlead/am/handler.hpp>

#include "am/send_buffers.hpp"
#include "engine/core.hpp"

namespace fairlead::am {

/// The part that each use resets.
struct ExchangeState {
  static constexpr std::uint32_t kNoTranslation = ~0U;

  bool is_used = false;
  bool is_open = false;         // a request without a reply so far
  bool is_engine_busy = false;  // the engine uses its memory
  bool is_shown = false;        // the error handler is looking at it
  std::optional<Refusal> lost;  // its peer was lost while the engine still holds its memory
  std::uint8_t argument_count = 0;
  std::uint8_t handler = 0;
  std::uint32_t translation = kNoTranslation;
  std::uint64_t data_length = 0;
  const std::byte* data = nullptr;

  engine::Conversation conversation;
  base::Instant begun{};
  base::Instant send_again_at{};
  base::Duration pause{};
};

/// acquire() does not clear the members below: that would cost as much as sending a message. The caller sets them.
struct Exchange : ExchangeState {
  std::uint32_t generation = 1;
  SendBuffers::Buffer buffer;
  engine::ActiveMessage message;
  std::array<iovec, 2> pieces;
  alignas(8) std::array<Argument, kArgumentsMax> arguments{};
};

/// Exchanges never move. A name includes the generation, so it tells whether its exchange still exists.
class ExchangeTable {
 public:
  std::uint32_t acquire() {
    if (free_.empty()) {
      all_.emplace_back();
      free_.push_back(static_cast<std::uint32_t>(all_.size() - 1));
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    all_[slot].is_used = true;
    return slot;
  }
  void release(std::uint32_t slot) {
    Exchange& exchange = all_[slot];
    static_cast<ExchangeState&>(exchange) = {};
    exchange.buffer = {};
    if (++exchange.generation == 0) exchange.generation = 1;
    free_.push_back(slot);
  }
  Exchange& operator[](std::uint32_t slot) { return all_[slot]; }
  std::uint64_t name_of(std::uint32_t slot) const { return std::uint64_t{all_[slot].generation} << 32 | slot; }
  static std::uint32_t slot_of(std::uint64_t name) { return static_cast<std::uint32_t>(name); }
  /// Returns null if the exchange is over. Accepts any number.
  Exchange* find(std::uint64_t name) {
    const std::uint32_t slot = slot_of(name);
    return slot < all_.size() && all_[slot].is_used && name_of(slot) == name ? &all_[slot] : nullptr;
  }
  std::uint32_t size() const { return static_cast<std::uint32_t>(all_.size()); }

 private:
  std::deque<Exchange> all_;
  std::vector<std::uint32_t> free_;
};

}  // namespace fairlead::am
