#pragma once
// What is kept of a message until it is over. A request: until its reply has come and the engine is done with its
// memory; it can be sent again until then. A reply: only if the engine could not take or copy it at once.

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

/// What begins anew with each use.
struct ExchangeState {
  static constexpr std::uint32_t kNoTranslation = ~0U;

  bool is_used = false;
  bool is_open = false;         // a request that has no reply yet
  bool is_engine_busy = false;  // its memory is the engine's
  bool is_shown = false;        // the error handler looks at it
  std::optional<Refusal> lost;  // its peer was lost, the engine still holds its memory
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

/// The rest is written by whoever acquires it: to clear it would cost as much as to send a message.
struct Exchange : ExchangeState {
  std::uint32_t generation = 1;
  SendBuffers::Buffer buffer;
  engine::ActiveMessage message;
  std::array<iovec, 2> pieces;
  alignas(8) std::array<Argument, kArgumentsMax> arguments{};
};

/// Exchanges never move; a name tells whether the one it named is still there.
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
  /// Null if it is over. Any number may be asked for.
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
