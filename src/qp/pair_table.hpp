#pragma once
// The queue pairs of an engine, by number. A freed number is used again only after all other free ones.

#include <cstdint>
#include <memory>
#include <vector>

#include "base/fifo.hpp"
#include "qp/queue_pair.hpp"

namespace fairlead::qp {

class PairTable {
 public:
  static constexpr std::uint32_t kMost = wire::PairPort::kPairs;
  static constexpr std::uint32_t kFirstIndex = 2;  // numbers 0 and 1 are reserved

  /// A number is number_first plus an index.
  explicit PairTable(std::uint32_t number_first) : number_first_(number_first) {
    for (std::uint32_t index = kFirstIndex; index < kMost; ++index) free_.push(index);
  }

  bool is_full() const { return free_.empty(); }
  bool is_empty() const { return free_.size() == kMost - kFirstIndex; }
  /// The table must not be full. Throws std::bad_alloc, and then has changed nothing.
  QueuePair& add(const PairPlan& plan) {
    const std::uint32_t index = free_.front();
    pairs_[index] = std::make_unique<QueuePair>(plan, index, generations_[index]);
    free_.pop();
    pairs_[index]->number = number_first_ + index;
    return *pairs_[index];
  }
  void remove(std::uint32_t index) {
    ++generations_[index];
    pairs_[index].reset();
    free_.push(index);
  }
  /// Incarnations continue from one queue pair of this number to the next.
  void begin_incarnation(QueuePair& pair) { pair.incarnation = ++incarnations_[pair.index]; }

  QueuePair* find(PairHandle handle) {
    QueuePair* const pair = handle.index < kMost ? pairs_[handle.index].get() : nullptr;
    return pair != nullptr && pair->generation == handle.generation ? pair : nullptr;
  }
  /// Finds a queue pair by the number that peers use; null if there is none, or it is closing.
  QueuePair* find_number(std::uint32_t number) {
    if (number - number_first_ >= kMost) return nullptr;
    QueuePair* const pair = pairs_[number - number_first_].get();
    return pair == nullptr || pair->is_closing ? nullptr : pair;
  }
  /// Returns null if the queue pair has been freed.
  QueuePair* at(std::uint32_t index) { return pairs_[index].get(); }
  template <typename Visit>
  void for_each(Visit&& visit) {
    for (const std::unique_ptr<QueuePair>& pair : pairs_)
      if (pair) visit(*pair);
  }

 private:
  friend class PairsHandover;

  std::uint32_t number_first_;
  std::vector<std::unique_ptr<QueuePair>> pairs_{kMost};  // by index, like the vectors below
  std::vector<std::uint32_t> generations_ = std::vector<std::uint32_t>(kMost, 1);
  std::vector<std::uint32_t> incarnations_ = std::vector<std::uint32_t>(kMost, 0);
  base::Fifo<std::uint32_t> free_;
};

}  // namespace fairlead::qp
