#pragma once
// A first-in first-out ring that doubles when full and never shrinks: no allocation once it has its size. Whoever
// fills it bounds it.

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace fairlead::link {

template <typename T>
class Fifo {
 public:
  void push(T value) {
    if (size() == ring_.size()) [[unlikely]]
      grow();
    ring_[tail_++ & (ring_.size() - 1)] = std::move(value);
  }

  std::optional<T> pop() {
    if (head_ == tail_) return std::nullopt;
    return std::move(ring_[head_++ & (ring_.size() - 1)]);
  }

  std::size_t size() const { return tail_ - head_; }
  bool is_empty() const { return head_ == tail_; }

 private:
  void grow() {
    std::vector<T> larger(ring_.empty() ? kLeast : ring_.size() * 2);
    const std::size_t count = size();
    for (std::size_t i = 0; i < count; ++i) larger[i] = std::move(ring_[(head_ + i) & (ring_.size() - 1)]);
    ring_ = std::move(larger);
    head_ = 0;
    tail_ = count;
  }

  static constexpr std::size_t kLeast = 64;
  std::vector<T> ring_;
  std::size_t head_ = 0;
  std::size_t tail_ = 0;
};

}  // namespace fairlead::link
