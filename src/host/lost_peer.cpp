#include "host/lost_peer.hpp"

#include <utility>

namespace fairlead::host {
namespace {

constexpr std::uint32_t kIsThere = 1, kHasLeft = 2;  // Answer::number

}  // namespace

Answer answer_loss(engine::ActivePorts& ports, std::uint64_t seen) {
  if (seen > ports.losses()) seen = 0;
  engine::PeerLoss loss;
  if (!ports.next_loss(seen, loss)) return {.application = seen};
  return {.number = kIsThere | (loss.has_left ? kHasLeft : 0),
          .operations_max = std::to_underlying(loss.status),
          .application = seen,
          .epoch = loss.way,
          .message_size_max = loss.mark,
          .address = to_plain(loss.engine)};
}

std::optional<engine::PeerLoss> loss_from(const Answer& answer, std::uint64_t& seen) {
  seen = answer.application;
  if ((answer.number & kIsThere) == 0) return std::nullopt;
  return engine::PeerLoss{.engine = from_plain(answer.address),
                          .status = status_from(answer.operations_max),
                          .has_left = (answer.number & kHasLeft) != 0,
                          .way = answer.epoch,
                          .mark = answer.message_size_max};
}

}  // namespace fairlead::host
