#pragma once
// Answers that the link had no room for, tried again in later passes. Each peer has a line of its own, in order; the
// lines have their turns, so a peer that takes nothing holds up nobody else.
//
// Bounds. A peer decides how much is answered to it, and whether it takes that. A line of kOfPeerMax is more than an
// honest peer lets come to; when all lines together are kMax, the one that has moved longest ago is the one too many:
// an honest peer acknowledges, and its line moves, within a round trip. A peer for whose answer there is no memory is
// too many, too. Whoever is too many is named by add() and has to be given up; nothing of others is ever thrown away.

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

  /// What is answered to this peer now has to wait behind what waits already.
  bool has(link::PeerHandle peer) const { return size_ != 0 && lines_.contains(name_of(peer)); }

  struct Added {
    bool is_taken = true;                    // else there was no memory for it
    std::optional<link::PeerHandle> excess;  // has to be given up
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

  /// At most `tries` calls of attempt(peer, item), which is true when the item is done with; it may add others. A line
  /// is left when its first item does not go, or it has had its turn.
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
        turns_.push(peer);  // there is room: one has just left
      }
    }
  }

  /// Calls visit(peer, item) for each, those of a peer in their order.
  template <typename Visit>
  void for_each(Visit&& visit) {
    for (auto& [name, line] : lines_)
      for (std::size_t index = 0; index < line.items.size(); ++index) visit(line.peer, line.items[index]);
  }

  /// The peer is lost: its items are handed out, ended(item), and forgotten.
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

  /// Null if there is no memory; then nothing has changed.
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

  std::unordered_map<std::uint64_t, Line> lines_;  // none is empty
  base::Fifo<link::PeerHandle> turns_;             // each line once
  std::size_t size_ = 0;
};

}  // namespace fairlead::transport
