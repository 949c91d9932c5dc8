#pragma once
// The keys that a port of an application has in advance: at the engine each is a blank (engine/exposures.hpp). The keys
// are published in the port's shelf. Which comes next is kept here, and never read from the shelf.

#include <array>
#include <cstdint>
#include <vector>

#include "engine/handles.hpp"
#include "host/layout.hpp"
#include "host/service_state.hpp"

namespace fairlead::host {

class ServedKeys {
 public:
  bool is_empty() const noexcept { return given_ == taken_; }
  std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(given_ - taken_); }

  /// Puts a key on the shelf. Call only if count() < kKeysAhead.
  void give(engine::OperationHandle blank, std::uint64_t key, KeyShelf& shelf) {
    const auto place = static_cast<std::size_t>(given_ % kKeysAhead);
    blanks_[place] = blank;
    shelf.keys[place].store(key, std::memory_order_relaxed);
    shelf.given.store(++given_, std::memory_order_release);
  }
  /// Takes the blank of the next key. Call only if !is_empty().
  engine::OperationHandle take() noexcept { return blanks_[taken_++ % kKeysAhead]; }

  KeysState save() const {
    KeysState state{.given = given_, .blanks = {}};
    for (std::uint64_t number = taken_; number != given_; ++number) {
      const engine::OperationHandle& blank = blanks_[number % kKeysAhead];
      state.blanks.push_back({.slot = blank.slot, .generation = blank.generation});
    }
    return state;
  }
  /// The shelf still has the keys.
  void restore(const KeysState& state) {
    given_ = state.given;
    taken_ = given_ - state.blanks.size();
    std::uint64_t number = taken_;
    for (const BlankState& blank : state.blanks) blanks_[number++ % kKeysAhead] = {blank.slot, blank.generation, {}};
  }

 private:
  std::array<engine::OperationHandle, kKeysAhead> blanks_;
  std::uint64_t given_ = 0, taken_ = 0;
};

}  // namespace fairlead::host
