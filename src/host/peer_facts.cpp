#include "host/peer_facts.hpp"

#include <algorithm>
#include <utility>

namespace fairlead::host {
namespace {

using transport::PeerProblem;

constexpr std::uint32_t kIsMet = 1, kIsTranslated = 2;  // Answer::number
constexpr unsigned kProblemShift = 8;                   // in Answer::number

}  // namespace

Answer answer_facts(const transport::PeerFacts& facts) {
  return {.number = (facts.is_met ? kIsMet : 0) | (facts.is_translated ? kIsTranslated : 0) |
                    static_cast<std::uint32_t>(std::to_underlying(facts.problem)) << kProblemShift,
          .operations_max = facts.release,
          .epoch = facts.datagram_size,
          .message_size_max = facts.longest_probe};
}

transport::PeerFacts facts_from(const Answer& answer) {
  const std::uint32_t problem = answer.number >> kProblemShift;
  return {.problem = static_cast<PeerProblem>(std::min<std::uint32_t>(problem, std::to_underlying(PeerProblem::other))),
          .is_met = (answer.number & kIsMet) != 0,
          .is_translated = (answer.number & kIsTranslated) != 0,
          .release = answer.operations_max,
          .datagram_size = static_cast<std::uint32_t>(answer.epoch),
          .longest_probe = static_cast<std::uint32_t>(answer.message_size_max)};
}

}  // namespace fairlead::host
