#pragma once
// The results of the last atomics. A repeated atomic is answered with the earlier result, because it must be executed
// only once.

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "wire/pair_words.hpp"

namespace fairlead::qp {

class AtomicResults {
 public:
  static constexpr std::size_t kKept = 16;

  void remember(wire::RequestSequence sequence, std::uint64_t value) {
    results_[next_++ % kKept] = {sequence, value, true};
  }
  std::optional<std::uint64_t> find(wire::RequestSequence sequence) const {
    const auto found = std::ranges::find_if(
        results_, [&](const Result& result) { return result.is_used && result.sequence == sequence; });
    return found == results_.end() ? std::nullopt : std::optional(found->value);
  }

  template <typename Archive>
  friend void fields(Archive& archive, AtomicResults& results) {
    for (Result& result : results.results_) archive(result.sequence, result.value, result.is_used);
    archive(results.next_);
  }

 private:
  struct Result {
    wire::RequestSequence sequence;
    std::uint64_t value = 0;
    bool is_used = false;
  };

  std::array<Result, kKept> results_;
  std::uint32_t next_ = 0;
};

}  // namespace fairlead::qp
