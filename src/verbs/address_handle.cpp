#include <fairlead/verbs/queue_pair.hpp>

#include <algorithm>
#include <cerrno>

#include "verbs/domain_state.hpp"

namespace fairlead::verbs {

struct AddressState {
  ~AddressState() {
    domain->context->addresses.give();
    domain->members.drop();
  }
  std::shared_ptr<DomainState> domain;
  AddressVector vector;
};

Result<AddressHandle> AddressHandle::create(const ProtectionDomain& domain, const AddressVector& vector) {
  const auto& owner = domain.state();
  if (!owner) return failure(EINVAL, "this protection domain is deallocated");
  if (auto alive = check_alive(*owner->context); !alive) return std::unexpected(std::move(alive.error()));
  if (auto usable = check(*owner->context, vector); !usable) return std::unexpected(std::move(usable.error()));
  if (!owner->context->addresses.take()) return failure(ENOMEM, "all address handles of the context are in use");
  owner->members.add();
  auto state = std::make_shared<AddressState>();
  state->domain = owner;
  state->vector = vector;
  return AddressHandle(std::move(state));
}

Result<> AddressHandle::destroy() {
  if (!state_) return failure(EINVAL, "this address handle is destroyed already");
  state_.reset();
  return {};
}

const AddressVector& AddressHandle::vector() const noexcept {
  return state_->vector;
}

Result<AddressVector> address_of_sender(const WorkCompletion& completion, std::span<const std::byte, 40> grh) {
  AddressVector vector;
  if ((completion.wc_flags & wc_flags::grh) == 0) {
    vector.dlid = completion.slid;
    return vector;
  }
  const auto byte = [&](std::size_t at) { return std::to_integer<std::uint8_t>(grh[at]); };
  vector.is_global = true;
  vector.hop_limit = 64;
  if (byte(0) >> 4 == 6) {
    for (std::size_t i = 0; i < 16; ++i) vector.dgid[i] = byte(8 + i);
    vector.traffic_class = static_cast<std::uint8_t>(byte(0) << 4 | byte(1) >> 4);
    return vector;
  }
  // For IPv4, the first 20 bytes are undefined.
  if (byte(20) >> 4 != 4) return failure(EINVAL, "the first 40 bytes of the buffer are no network header");
  vector.dgid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, byte(32), byte(33), byte(34), byte(35)};
  vector.traffic_class = byte(21);
  return vector;
}

}  // namespace fairlead::verbs
