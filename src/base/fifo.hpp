#pragma once
// A queue of values in one block of memory. The block doubles when it is full, and is kept: a queue that has reached
// its length allocates no more. Values are numbered in their order, from 1, for as long as the queue lives.

#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <utility>

namespace fairlead::base {

template <typename T>
class Fifo {
 public:
  bool empty() const noexcept { return first_ == end_; }
  std::size_t size() const noexcept { return end_ - first_; }
  T& front() noexcept { return values_[first_ & mask()]; }
  const T& front() const noexcept { return values_[first_ & mask()]; }
  /// Returns the value at `index` from the front.
  T& operator[](std::size_t index) noexcept { return values_[(first_ + index) & mask()]; }
  const T& operator[](std::size_t index) const noexcept { return values_[(first_ + index) & mask()]; }

  /// The number of the last value pushed; 0 if there was none.
  std::size_t last_number() const noexcept { return end_; }
  /// Returns null if the value is not in the queue any more.
  T* find(std::size_t number) noexcept {
    return number - 1 - first_ < size() ? &values_[(number - 1) & mask()] : nullptr;
  }

  /// Makes room for so many more values, so that push() does not allocate.
  void reserve(std::size_t more) {
    while (capacity_ - size() < more) grow();
  }
  /// As reserve(), but returns false if there is no memory.
  bool has_room(std::size_t more) noexcept { return capacity_ - size() >= more || try_reserve(more); }
  void push(T value) {
    if (size() == capacity_) [[unlikely]]
      grow();
    append() = std::move(value);
  }
  /// As push() if there is room. The caller fills the value in place; it still has the contents of an earlier one.
  T& append() noexcept { return values_[end_++ & mask()]; }
  void pop() noexcept { ++first_; }
  /// Takes out the first value; returns nothing if there is none.
  std::optional<T> take() {
    if (empty()) return std::nullopt;
    return std::move(values_[first_++ & mask()]);
  }
  /// Removes the value at `index` from the front. Later values move up, and their numbers change.
  void erase(std::size_t index) noexcept {
    for (std::size_t at = index; at + 1 < size(); ++at) (*this)[at] = std::move((*this)[at + 1]);
    --end_;
  }
  void clear() noexcept { first_ = end_; }

 private:
  static constexpr std::size_t kCapacityMin = 16;

  [[gnu::noinline]] bool try_reserve(std::size_t more) noexcept try {
    reserve(more);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
  std::size_t mask() const noexcept { return capacity_ - 1; }
  void grow() {
    const std::size_t more = capacity_ == 0 ? kCapacityMin : 2 * capacity_;
    auto values = std::make_unique<T[]>(more);
    for (std::size_t i = first_; i != end_; ++i) values[i & (more - 1)] = std::move(values_[i & mask()]);
    values_ = std::move(values);
    capacity_ = more;
  }

  std::size_t first_ = 0, end_ = 0;  // first, so that empty() reads the first bytes
  std::unique_ptr<T[]> values_;
  std::size_t capacity_ = 0;  // a power of two, or 0
};

}  // namespace fairlead::base
