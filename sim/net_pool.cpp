#include "sim/net_pool.hpp"

#include <utility>

namespace fairlead::sim {
namespace {

constexpr std::uint64_t kPooledSize = 12'288, kPooledLeast = 6144;  // bytes; one or more messages
constexpr std::uint32_t kColours = 3;

}  // namespace

NetPool::NetPool(NetShared& shared, net::Domain& domain, std::uint32_t number, const std::string& address)
    : shared_(shared),
      number_(number),
      address_(address),
      pool_(net::BufferPool::create(domain, {.buffer_size = kPooledSize, .colours = kColours}).value()) {
  SIM_CHECK(shared_.findings, pool_.provision(shared_.extras.between(1, 8)).has_value(), "no pool");
}

void NetPool::attach(net::TransferMachine& machine, std::function<void(const net::BufferEvent&, bool)> on_event) {
  Random& random = shared_.extras;
  on_event_ = std::move(on_event);
  wishes_ = {.on_event = [this](const net::BufferEvent& event) { this->on_event(event); },
             .size_min = kPooledLeast,
             .messages_max = static_cast<std::uint32_t>(random.between(1, 3)),
             .length = static_cast<std::uint32_t>(random.between(1, 10)),
             .colour = random.chance(0.5) ? net::kAnyColour : static_cast<std::uint32_t>(random.below(kColours))};
  const auto attached = machine.attach(pool_, wishes_);
  SIM_CHECK(shared_.findings, attached.has_value(), "{}: no pool attached", address_);
}

void NetPool::on_event(const net::BufferEvent& event) {
  const auto [found, is_first] = filling_.try_emplace(&event.buffer, NetFilling{.messages_left = wishes_.messages_max});
  on_event_(event, is_first);
  if (event.status == Status::ok) {
    shared_.check_place(found->second, event, kPooledLeast, address_);
    shared_.check_arrival(shared_.messages, number_, event, address_);
  } else {
    SIM_STATEMENT(shared_, 6, event.is_final, "{}: an event of a pool's buffer says {} and is not final", address_,
                  to_string(event.status));
  }
  if (!event.is_final) return;
  filling_.erase(found);
  if (event.status != Status::ok) return;  // the pool takes it back by itself
  held_.push_back(&event.buffer);
  if (shared_.extras.chance(0.5)) give_back(held_.size() - 1);
}

void NetPool::give_back(std::size_t index) {
  net::Buffer* const buffer = held_[index];
  held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(index));
  const auto colour =
      shared_.extras.chance(0.5) ? net::kAnyColour : static_cast<std::uint32_t>(shared_.extras.below(kColours));
  const Status status = pool_.put(*buffer, colour);
  SIM_CHECK(shared_.findings, status == Status::ok, "{}: a buffer could not go back: {}", address_, to_string(status));
}

void NetPool::act(net::TransferMachine& machine) {
  Random& random = shared_.extras;
  if (random.chance(0.1)) {
    wishes_.length = static_cast<std::uint32_t>(random.between(1, 10));
    (void)machine.set_receive_length(wishes_.length);
  }
  while (!held_.empty() && random.chance(0.7)) give_back(random.below(held_.size()));
  check_deficit(machine);
}

// The engine takes what it lacks as soon as the pool has some, so there is no deficit beside buffers in the pool.
void NetPool::check_deficit(const net::TransferMachine& machine) {
  if (machine.state() != net::MachineState::started) return;
  const std::uint32_t deficit = machine.receive_deficit();
  SIM_STATEMENT(shared_, 15, deficit <= wishes_.length && (deficit == 0 || pool_.free_count() == 0),
                "{}: {} buffers of {} are missing though {} of {} are in the pool", address_, deficit, wishes_.length,
                pool_.free_count(), pool_.size());
}

void NetPool::check_home() {
  SIM_STATEMENT(shared_, 15, filling_.empty() && pool_.free_count() + held_.size() == pool_.size(),
                "{}: stopped, and {} buffers of {} are in the pool, {} held, {} half filled", address_,
                pool_.free_count(), pool_.size(), held_.size(), filling_.size());
}

}  // namespace fairlead::sim
