// Parses a fault plan. Any text gives a plan that prints and parses as itself, or an error of one printable line.

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/ensure.hpp"
#include "path/fault_plan.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using fairlead::path::FaultPlan;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto plan = FaultPlan::parse(text);
  if (!plan) {
    const std::string_view message = plan.error().message;
    ENSURE(!message.empty() && std::ranges::all_of(message, [](char letter) { return letter >= ' ' && letter <= '~'; }),
           "an error for a plan of {} bytes that is not a printable line", size);
    return 0;
  }
  ENSURE(plan->drop.per_million <= fairlead::path::kMillion && plan->burst >= 1 &&
             plan->distance_min <= plan->distance_max && plan->delay <= FaultPlan::kTimeMax,
         "{} is out of range", plan->to_string());
  const auto again = FaultPlan::parse(plan->to_string());
  ENSURE(again && *again == *plan, "{} is not what it was parsed from", plan->to_string());
  return 0;
}
