#pragma once
// A responder's answer to a request, and its encoding in an envelope (docs/queue-pairs.md). Every answer except
// not_ready also acknowledges all requests before the one that it names.

#include <cstdint>
#include <optional>
#include <utility>

#include <fairlead/verbs/types.hpp>

#include "wire/envelope.hpp"
#include "wire/pair_words.hpp"

namespace fairlead::qp {

using wire::Verdict;

struct Answer {
  Verdict verdict = Verdict::ack;
  verbs::Cause cause = verbs::Cause::none;
  bool carries_result = false;  // ends a read (result in the payload) or an atomic
  std::uint64_t value = 0;      // of an atomic: the old value
  std::uint8_t rnr_code = 0;

  bool is_ack() const { return verdict == Verdict::ack; }
};

/// The source and the target of an answer.
struct AnswerRoute {
  std::uint32_t source = 0;  // number of the responder's queue pair
  std::uint32_t target = 0;  // wire::PairPort of the requester
};

inline wire::Envelope encode(const Answer& answer, wire::RequestSequence sequence, const AnswerRoute& route) {
  const auto flags = static_cast<std::uint16_t>(answer.carries_result ? wire::kCarriesResult : 0);
  return {.operation = wire::Operation::pair_answer,
          .status = std::to_underlying(answer.verdict),
          .flags = static_cast<std::uint16_t>(std::to_underlying(answer.cause) | flags),
          .source_port = route.source,
          .target_port = route.target,
          .key = wire::encode(wire::RequestKey{.sequence = sequence}),
          .cookie = answer.value,
          .a = answer.rnr_code};
}

/// Returns nothing if the verdict is unknown.
inline std::optional<Answer> decode_answer(const wire::Envelope& envelope) {
  if (envelope.status > std::to_underlying(wire::kVerdictLast)) return std::nullopt;
  const auto verdict = static_cast<Verdict>(envelope.status);
  return Answer{.verdict = verdict,
                .cause = static_cast<verbs::Cause>(envelope.flags & 0xFF),
                .carries_result = (envelope.flags & wire::kCarriesResult) != 0 && verdict == Verdict::ack,
                .value = envelope.cookie,
                .rnr_code = static_cast<std::uint8_t>(envelope.a & 31)};
}

}  // namespace fairlead::qp
