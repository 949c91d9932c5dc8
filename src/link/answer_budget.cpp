#include "link/answer_budget.hpp"

#include <algorithm>

namespace fairlead::link {
namespace {

constexpr base::Duration kAtOnce = std::chrono::nanoseconds(std::chrono::seconds(1)) / 16;

}  // namespace

AnswerBudget::Rate::Rate(std::uint32_t per_second)
    : each_(base::Duration(std::chrono::seconds(1)) / std::max(per_second, 1U)) {}

bool AnswerBudget::Rate::take(base::Instant& used_until, base::Instant now) const {
  const base::Instant begin = std::max(used_until, now);
  if (begin - now > kAtOnce) return false;
  used_until = begin + each_;
  return true;
}

AnswerBudget::AnswerBudget(const base::SipKey& key, std::uint32_t each_per_second, std::uint32_t common_per_second)
    : key_(key), of_each_(each_per_second), of_all_(common_per_second) {}

bool AnswerBudget::take(const base::SocketAddress& to, base::Instant now) {
  const std::uint64_t share = base::SipHash(key_).add(to.host()).value() % kShares;
  return of_each_.take(each_used_until_[share], now) || of_all_.take(all_used_until_, now);
}

}  // namespace fairlead::link
