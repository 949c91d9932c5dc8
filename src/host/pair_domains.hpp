#pragma once
// Translates protection domains of all applications at a host engine. Each application has its own numbers. Here each
// domain gets a unique one, so that no application's keys match another's queue pairs.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "host/map_place.hpp"
#include "host/pairs_state.hpp"

namespace fairlead::host {

/// Allocates unique numbers.
class DomainNumbers {
 public:
  std::uint32_t take() {
    if (unused_.empty()) {
      if (unused_.capacity() < next_) unused_.reserve(2 * std::size_t{next_});  // so that give_back() never allocates
      return next_++;
    }
    const std::uint32_t number = unused_.back();
    unused_.pop_back();
    return number;
  }
  void give_back(std::uint32_t number) noexcept { unused_.push_back(number); }
  /// Takes this number. Returns false if it is taken, or impossible.
  bool take(std::uint32_t number) {
    constexpr std::uint32_t kMost = 1U << 20;
    if (number == 0 || number > kMost) return false;
    unused_.reserve(2 * std::size_t{std::max(number + 1, next_)});
    while (next_ <= number) unused_.push_back(next_++);
    return std::erase(unused_, number) != 0;
  }

 private:
  std::uint32_t next_ = 1;
  std::vector<std::uint32_t> unused_;
};

/// The domains of one application. A domain exists while it has members.
class PairDomains {
 public:
  explicit PairDomains(DomainNumbers& numbers) : numbers_(numbers) {}

  /// Adds a member and returns the engine's number of the domain.
  std::uint32_t enter(std::uint32_t domain) {
    if (const auto known = all_.find(domain); known != all_.end()) {
      ++known->second.members;
      return known->second.number;
    }
    MapPlace place(all_);
    return place.fill(domain, {.number = numbers_.take(), .members = 1}).number;
  }
  void leave(std::uint32_t domain) {
    const auto entry = all_.find(domain);
    if (--entry->second.members != 0) return;
    numbers_.give_back(entry->second.number);
    all_.erase(entry);
  }

  /// Restores a domain with its number, still without members. Returns false if there is one already.
  bool restore(const PairDomainState& saved) {
    return numbers_.take(saved.number) &&
           all_.try_emplace(saved.domain, Domain{.number = saved.number, .members = 0}).second;
  }
  std::vector<PairDomainState> save() const {
    std::vector<PairDomainState> saved;
    for (const auto& [domain, its] : all_) saved.push_back({.domain = domain, .number = its.number});
    return saved;
  }

  void leave_all() {
    for (const auto& [domain, its] : all_) numbers_.give_back(its.number);
    all_.clear();
  }

 private:
  struct Domain {
    std::uint32_t number = 0, members = 0;
  };

  DomainNumbers& numbers_;
  std::unordered_map<std::uint32_t, Domain> all_;
};

}  // namespace fairlead::host
