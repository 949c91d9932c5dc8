#include "net/receive_provision.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <fairlead/net/transfer_machine.hpp>

#include "net/refused.hpp"

namespace fairlead::net {

Result<> ReceiveProvision::attach(const DomainState* domain, std::shared_ptr<PoolState> pool, Provision provision) {
  if (pool->domain.get() != domain) return refused(Status::invalid, "the pool is of another domain");
  if (!provision.on_event)
    return refused(Status::invalid, "a provision without on_event: set the callback that receives the messages");
  const std::uint64_t size = pool->settings.buffer_size;
  if (provision.size_min == kWholeBuffer) provision.size_min = size;
  if (provision.size_min == 0 || provision.size_min > size) {
    return refused(Status::invalid,
                   fmt::format("size_min {} is not in 1..{}, what the pool's buffers have", provision.size_min, size));
  }
  if (provision.messages_max == 0 || provision.messages_max > kMessagesInBufferMax) {
    return refused(Status::invalid,
                   fmt::format("messages_max {} is not in 1..{}", provision.messages_max, kMessagesInBufferMax));
  }
  if (!pool->has_colour(provision.colour)) {
    return refused(Status::invalid, fmt::format("colour {} of {}", provision.colour, pool->settings.colours));
  }
  pool_ = std::move(pool);
  wishes_ = std::move(provision);
  return {};
}

Status ReceiveProvision::set_length(std::uint32_t length) {
  wishes_.length = length;
  return Status::ok;
}

Status ReceiveProvision::set_colour(std::uint32_t colour) {
  if (!pool_->has_colour(colour)) return Status::invalid;
  wishes_.colour = colour;
  return Status::ok;
}

void ReceiveProvision::fill(MachinePort& port) {
  const std::size_t all = std::min<std::size_t>(pool_->size(), kEventsMost / wishes_.messages_max);
  // If not all events can be reserved, grant as many buffers as possible.
  for (std::size_t more = all > granted_ ? all - granted_ : 0; more > 0; more /= 2) {
    const auto count = static_cast<std::uint32_t>(more);
    if (port.core->reserve_events(port.handle, count * wishes_.messages_max) != Status::ok) continue;
    granted_ += count;
    port.core->grant_spares(port.handle, count);
    break;
  }
  port.core->set_spares(port.handle, {.spares = pool_->spares,
                                      .colour = wishes_.colour,
                                      .length = wishes_.length,
                                      .share = pool_->share(wishes_.length),
                                      .size_min = wishes_.size_min,
                                      .messages_max = wishes_.messages_max,
                                      .takes_loans = wishes_.takes_loans});
}

void ReceiveProvision::withdraw(MachinePort& port) {
  if (is_attached()) port.core->set_spares(port.handle, {});
}

// The order matters: the engine queues the last completion before it lowers the count.
bool ReceiveProvision::is_home(const MachinePort& port) const {
  return !is_attached() || (port.core->spare_counts(port.handle).unended == 0 && !port.core->has_event(port.handle));
}

std::uint32_t ReceiveProvision::deficit(const MachinePort& port) const {
  return is_attached() && port.core ? port.core->spare_counts(port.handle).missing : 0;
}

}  // namespace fairlead::net
