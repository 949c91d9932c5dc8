#include "verbs/port_watch.hpp"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/local_addresses.hpp"

namespace fairlead::verbs {
namespace {

// Any loopback address counts as the loopback interface's own.
bool is_on(const base::Interface& face, const base::SocketAddress& own) {
  return face.address.ip == own.ip || (own.is_loopback() && face.address.is_loopback());
}

bool is_among(const ContextState& context, const std::vector<base::Interface>& up) {
  const base::SocketAddress own{.ip = context.device.gid, .scope = 0, .port = 0};
  return std::ranges::any_of(up, [&](const base::Interface& face) { return is_on(face, own); });
}

void look_at_port(ContextState& context) {
  const auto up = base::local_interfaces();
  if (!up) return;
  const auto tell = [&](AsyncEventType type) {
    context.pair_core->tell(context.events, {std::to_underlying(type), context.port_number_in_context});
  };
  const bool is_active = is_among(context, *up);
  if (is_active != context.is_port_active.exchange(is_active)) {
    const bool is_up = std::ranges::find(*up, context.device.interface_index, &base::Interface::index) != up->end();
    if (!is_active && is_up) tell(AsyncEventType::gid_change);
    tell(is_active ? AsyncEventType::port_active : AsyncEventType::port_err);
  }
  const std::uint32_t index = context.device.interface_index;
  if (!is_active && index != 0 && !base::has_interface(index) && !context.is_removed.exchange(true))
    tell(AsyncEventType::device_fatal);
}

}  // namespace

bool has_port(const ContextState& context) {
  const auto up = base::local_interfaces();
  return !up || is_among(context, *up);
}

Result<> wait_for_event(ContextState& context) {
  std::call_once(context.watching, [&] {
    if (auto watch = base::InterfaceWatch::open()) context.interfaces.emplace(std::move(*watch));
    look_at_port(context);  // the port may have changed before the watch began
  });
  if (!context.interfaces) return {};  // the caller's read then waits
  const int events = context.events->descriptor();
  const bool blocks = (::fcntl(events, F_GETFL) & O_NONBLOCK) == 0;
  for (;;) {
    std::array<pollfd, 2> waits{{{events, POLLIN, 0}, {context.interfaces->descriptor(), POLLIN, 0}}};
    if (::poll(waits.data(), waits.size(), blocks ? -1 : 0) < 0) return failure(errno, "no event is there");
    if (waits[1].revents != 0) {
      context.interfaces->drain();
      look_at_port(context);
    }
    if (!blocks || waits[0].revents != 0) return {};
  }
}

}  // namespace fairlead::verbs
