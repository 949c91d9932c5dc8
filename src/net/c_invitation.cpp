// C interface <fairlead/net.h>: invitations.

#include <string>
#include <vector>

#include "net/c_face.hpp"

namespace net = fairlead::net;
namespace c = fairlead::net::c;

namespace {

/// Returns null if one of the handles is null.
const net::Buffer* const* buffers_of(const fairlead_net_buffer* const* handles, std::size_t count,
                                     std::vector<const net::Buffer*>& all) {
  for (const fairlead_net_buffer* const handle : std::span(handles, count)) {
    if (handle == nullptr) return nullptr;
    all.push_back(c::meant(handle));
  }
  all.push_back(nullptr);  // makes data() non-null for count 0
  return all.data();
}

fairlead_status hand_over(net::Met met, fairlead_net_end_point** peer, std::uint8_t* descriptors, std::size_t* count) {
  const std::size_t room = descriptors != nullptr ? *count : 0;
  for (std::size_t i = 0; i < std::min(room, met.exposed.size()); ++i)
    std::memcpy(descriptors + i * net::kDescriptorSize, met.exposed[i].data(), net::kDescriptorSize);
  *count = met.exposed.size();
  *peer = c::handle_of<fairlead_net_end_point>(new net::EndPoint(std::move(met.peer)));
  return FAIRLEAD_OK;
}

}  // namespace

fairlead_status fairlead_net_machine_meet(fairlead_net_machine* machine, int socket,
                                          const fairlead_net_buffer* const* buffers, size_t count, int64_t deadline_ns,
                                          fairlead_net_end_point** peer, uint8_t* descriptors,
                                          size_t* descriptors_count) {
  if (c::is_any_null(machine, peer, descriptors_count) || (buffers == nullptr && count > 0)) return c::fail_null();
  return c::guarded([&] {
    std::vector<const net::Buffer*> all;
    const auto* const exposed = buffers_of(buffers, count, all);
    if (exposed == nullptr) return c::fail_null();
    auto met = net::meet(*c::meant(machine), socket, {exposed, count}, c::to_instant(deadline_ns));
    return met ? hand_over(std::move(*met), peer, descriptors, descriptors_count) : c::fail(met.error());
  });
}

size_t fairlead_net_machine_invite(const fairlead_net_machine* machine, const fairlead_net_buffer* const* buffers,
                                   size_t count, char* text, size_t size) {
  c::write_text("", text, size);
  if (machine == nullptr || (buffers == nullptr && count > 0)) {
    c::fail_null();
    return 0;
  }
  const auto invite = [&]() -> std::size_t {
    std::vector<const net::Buffer*> all;
    const auto* const exposed = buffers_of(buffers, count, all);
    const auto own = exposed != nullptr ? net::Invitation::of(*c::meant(machine), {exposed, count})
                                        : fairlead::Result<net::Invitation>(std::unexpected(
                                              fairlead::Error{fairlead::Status::invalid, 0, "a buffer is null"}));
    if (own) return c::write_text(own->to_text(), text, size);
    c::fail(own.error());
    return 0;
  };
  return c::guarded_or(std::size_t{0}, invite);
}

fairlead_status fairlead_net_machine_accept(fairlead_net_machine* machine, const char* invitation,
                                            fairlead_net_end_point** peer, uint8_t* descriptors,
                                            size_t* descriptors_count) {
  if (c::is_any_null(machine, invitation, peer, descriptors_count)) return c::fail_null();
  return c::guarded([&] {
    auto theirs = net::Invitation::from_text(invitation);
    if (!theirs) return c::fail(theirs.error());
    auto there = c::meant(machine)->create_end_point(theirs->address);
    if (!there) return c::fail(there.error());
    return hand_over({std::move(*there), std::move(theirs->exposed)}, peer, descriptors, descriptors_count);
  });
}
