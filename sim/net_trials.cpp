#include "sim/net_trials.hpp"

#include <memory>
#include <utility>

namespace fairlead::sim {

void NetTrials::try_addresses() {
  net::TransferMachine second(domain_);
  const auto refused = second.start_and_wait(address_);
  SIM_STATEMENT(shared_, 10, !refused && refused.error().status == Status::in_use, "{} was given out twice", address_);

  const std::string prefix = address_.substr(0, address_.rfind(":34:")) + ":35:";
  std::vector<std::unique_ptr<net::TransferMachine>> machines;
  for (const int tmid : {4095, 4094, 4095}) {
    if (machines.size() == 2) machines[0].reset();  // its tmid is free again
    machines.push_back(std::make_unique<net::TransferMachine>(domain_));
    const auto own = machines.back()->start_and_wait(prefix + '*');
    SIM_STATEMENT(shared_, 10, own && own->address() == prefix + std::to_string(tmid), "{}* became {}", prefix,
                  own ? std::string(own->address()) : own.error().message);
  }
}

void NetTrials::try_damaged(net::TransferMachine& machine, net::Buffer& buffer, const NetOffer& offer) {
  net::BufferDescriptor damaged = offer.descriptor;
  const std::uint64_t bit = shared_.extras.below(damaged.size() * 8);
  damaged.at(bit / 8) ^= std::byte{1} << (bit % 8);
  const Status status = offer.kind == net::QueueKind::passive_bulk_send
                            ? machine.add(buffer, net::ActiveReceive{.descriptor = damaged})
                            : machine.add(buffer, net::ActiveSend{.descriptor = damaged});
  SIM_STATEMENT(shared_, 11, status == Status::invalid && !buffer.is_queued(),
                "{}: a descriptor with bit {} flipped is {}", address_, bit, to_string(status));
}

void NetTrials::try_too_late(net::TransferMachine& machine, net::Buffer& buffer) {
  const fairlead::Instant past = shared_.world.public_now() - std::chrono::microseconds(1);
  const Status status = machine.add(buffer, net::MessageReceive{.deadline = past});
  SIM_STATEMENT(shared_, 8, status == Status::too_late && !buffer.is_queued(), "{}: a past deadline is {}", address_,
                to_string(status));
}

void NetTrials::close(net::TransferMachine& machine, net::EndPoint kept) {
  if (kept) {
    const auto refused = machine.close();
    SIM_STATEMENT(shared_, 17, !refused && refused.error().status == Status::bad_state,
                  "{} closed though {} was referred to", address_, kept.address());
    kept = {};
  }
  const auto closed = machine.close();
  SIM_STATEMENT(shared_, 17, closed.has_value() && machine.state() == net::MachineState::undefined,
                "{} would not close: {}", address_, closed ? "" : closed.error().message);
}

}  // namespace fairlead::sim
