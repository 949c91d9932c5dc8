#pragma once
// Answers that the link had no room for, tried again in later passes. Each peer has a line of its own, in order; the
// lines have their turns, so a peer that takes nothing holds up nobody else.
//
// Bounds. A peer decides how much is answered to it, and whether it takes that. A line of kOfPeerMax is more than an
// honest peer lets come to; when all lines together are kMax, the one that has moved longest ago is the one too many:
// an honest peer acknowledges, and its line moves, within a round trip. Whoever is too many is named by add() and has
// to be given up; nothing of others is ever thrown away.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>

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

  /// Takes it in any case; answers the peer that has to be given up for it, if there is one.
  std::optional<link::PeerHandle> add(link::PeerHandle peer, const Item& item, base::Instant now) {
    const auto [line, is_new] = lines_.try_emplace(name_of(peer), Line{.peer = peer, .moved_at = now, .items = {}});
    if (is_new) turns_.push_back(peer);
    line->second.items.push_back(item);
    ++size_;
    if (line->second.items.size() > kOfPeerMax) return peer;
    if (size_ <= kMax) return std::nullopt;
    const auto earlier = [](const auto& a, const auto& b) { return a.second.moved_at < b.second.moved_at; };
    return std::ranges::min_element(lines_, earlier)->second.peer;
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
        line.items.pop_front();
        --size_;
        line.moved_at = now;
        stuck = 0;
      }
      turns_.pop_front();
      if (line.items.empty()) {
        lines_.erase(name_of(peer));
      } else {
        turns_.push_back(peer);
      }
    }
  }

  /// The peer is lost: its items are handed out, ended(item), and forgotten.
  template <typename Ended>
  void drop(link::PeerHandle peer, Ended&& ended) {
    const auto found = lines_.find(name_of(peer));
    if (found == lines_.end()) return;
    const std::deque<Item> items = std::move(found->second.items);
    lines_.erase(found);
    std::erase(turns_, peer);
    size_ -= items.size();
    for (const Item& item : items) ended(item);
  }

 private:
  struct Line {
    link::PeerHandle peer;
    base::Instant moved_at;
    std::deque<Item> items;
  };

  static std::uint64_t name_of(link::PeerHandle peer) { return std::uint64_t{peer.generation} << 32 | peer.slot; }

  std::unordered_map<std::uint64_t, Line> lines_;  // none is empty
  std::deque<link::PeerHandle> turns_;             // each line once
  std::size_t size_ = 0;
};

}  // namespace fairlead::transport
