#pragma once
// Answers for which the link had no room, retried in later passes. Each peer has its own queue (line), in order. The
// lines take turns, so a peer that accepts nothing holds up no other.
//
// Limits. A peer decides how many answers it causes, and whether it accepts them. An honest peer never reaches
// kOfPeerMax. When all lines together reach kMax, the one that has not moved for longest is excess: an honest peer
// acknowledges, and its line moves, within a round trip. A peer for whose answer there is no memory is excess, too.
// add() names an excess peer, which has to be given up; answers to other peers are never dropped.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/fifo.hpp"
#include "base/time.hpp"
#include "link/link.hpp"

namespace fairlead::transport {

template <typename Item>
class RetryQueue {
 public:
  static constexpr std::size_t kOfPeerMax = std::size_t{1} << 16;
  static constexpr std::size_t kMax = std::size_t{1} << 18;

  bool is_empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  static constexpr std::size_t kInTurn = 32;

  /// Returns whether answers to this peer wait already; a new one then has to queue behind them.
  bool has(link::PeerHandle peer) const { return size_ != 0 && lines_.contains(name_of(peer)); }

  struct Added {
    bool is_taken = true;                    // false: there was no memory for it
    std::optional<link::PeerHandle> excess;  // a peer that has to be given up
  };
  Added add(link::PeerHandle peer, const Item& item, base::Instant now) {
    Line* const line = append(peer, item, now);
    if (line == nullptr) [[unlikely]]
      return {false, peer};
    ++size_;
    if (line->items.size() > kOfPeerMax) return {true, peer};
    if (size_ <= kMax) return {};
    const auto earlier = [](const auto& a, const auto& b) { return a.second.moved_at < b.second.moved_at; };
    return {true, std::ranges::min_element(lines_, earlier)->second.peer};
  }

  /// Makes at most `tries` calls of attempt(peer, item), which returns true when the item is done; it may add others. A
  /// line's turn ends when its first item is not accepted, or after kInTurn items.
  template <typename Attempt>
  void retry(std::size_t tries, base::Instant now, Attempt&& attempt) {
    for (std::size_t stuck = 0; tries > 0 && stuck < turns_.size();) {
      const link::PeerHandle peer = turns_.front();
      Line& line = lines_.at(name_of(peer));
      ++stuck;
      for (std::size_t done = 0; tries > 0 && done < kInTurn && !line.items.empty(); ++done) {
        --tries;
        if (!attempt(peer, Item(line.items.front()))) break;
        line.items.pop();
        --size_;
        line.moved_at = now;
        stuck = 0;
      }
      turns_.pop();
      if (line.items.empty()) {
        lines_.erase(name_of(peer));
      } else {
        turns_.push(peer);  // has room: one entry has just left
      }
    }
  }

  /// Calls visit(peer, item) for each item; those of a peer in their order.
  template <typename Visit>
  void for_each(Visit&& visit) {
    for (auto& [name, line] : lines_)
      for (std::size_t index = 0; index < line.items.size(); ++index) visit(line.peer, line.items[index]);
  }

  /// Drops the line of a lost peer, and calls ended(item) for each of its items.
  template <typename Ended>
  void drop(link::PeerHandle peer, Ended&& ended) {
    const auto found = lines_.find(name_of(peer));
    if (found == lines_.end()) return;
    base::Fifo<Item> items = std::move(found->second.items);
    lines_.erase(found);
    for (std::size_t turn = 0; turn < turns_.size(); ++turn) {
      if (turns_[turn] == peer) turns_.erase(turn);
    }
    size_ -= items.size();
    for (; !items.empty(); items.pop()) ended(items.front());
  }

 private:
  struct Line {
    link::PeerHandle peer;
    base::Instant moved_at;
    base::Fifo<Item> items;
  };

  /// Returns null if there is no memory; then nothing has changed.
  Line* append(link::PeerHandle peer, const Item& item, base::Instant now) try {
    if (!turns_.has_room(1)) return nullptr;
    const auto known = lines_.find(name_of(peer));
    if (known != lines_.end()) {
      known->second.items.push(item);
      return &known->second;
    }
    Line line{.peer = peer, .moved_at = now, .items = {}};
    line.items.push(item);
    Line& added = lines_.emplace(name_of(peer), std::move(line)).first->second;
    turns_.push(peer);
    return &added;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }

  static std::uint64_t name_of(link::PeerHandle peer) { return std::uint64_t{peer.generation} << 32 | peer.slot; }

  std::unordered_map<std::uint64_t, Line> lines_;  // no line is empty
  base::Fifo<link::PeerHandle> turns_;             // each line once
  std::size_t size_ = 0;
};

}  // namespace fairlead::transport
