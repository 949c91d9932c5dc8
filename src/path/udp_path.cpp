#include "path/udp_path.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/neighbours.hpp"

namespace fairlead::path {
namespace {

constexpr std::size_t kLoneStreakMax = 4;  // lone arrivals returned in a row without polling for a second one
constexpr std::size_t kFaithfulShare = 4;
constexpr std::size_t kHotUnwatched = 1;
constexpr std::size_t kErrorsPerRead = 16;
constexpr std::uint32_t kBufferBytesMin = 256u << 10;  // holds a whole train, also as single datagrams
constexpr std::uint32_t kArrivalBytesMin = 1;
constexpr std::uint32_t kArrivalBytesMax = 65'536;
constexpr std::uint32_t kPorts = 65'536;

std::unexpected<Error> refuse(std::string message) {
  return std::unexpected(Error{Status::invalid, 0, std::move(message)});
}

Result<> check(const UdpOptions& options, std::size_t hot_max) {
  if (options.port_count == 0 || options.local.port + options.port_count > kPorts ||
      (options.local.port == 0 && options.port_count > 1))
    return refuse(fmt::format("port range {} + {} is not within 1 to 65535: choose a lower base or fewer ports",
                              options.local.port, options.port_count));
  if (options.receive_buffer_bytes < kBufferBytesMin || options.send_buffer_bytes < kBufferBytesMin)
    return refuse(fmt::format("socket buffers of {} and {} bytes are too small for one train: at least {} each",
                              options.receive_buffer_bytes, options.send_buffer_bytes, kBufferBytesMin));
  if (options.hot_sockets_max > hot_max)
    return refuse(fmt::format("{} hot sockets are too many: at most {}", options.hot_sockets_max, hot_max));
  if (options.arrival_bytes_max < kArrivalBytesMin || options.arrival_bytes_max > kArrivalBytesMax)
    return refuse(fmt::format("arrivals of {} bytes: choose {} to {}", options.arrival_bytes_max, kArrivalBytesMin,
                              kArrivalBytesMax));
  return {};
}

Error cannot_bind(const UdpOptions& options, int number) {
  const bool is_range = options.port_count > 1;
  const std::string what =
      is_range ? fmt::format("{} or the {} ports after it", options.local.to_string(), options.port_count - 1)
               : options.local.to_string();
  const auto tell = [&](Status status, std::string_view remedy) {
    return Error{status, number, fmt::format("cannot bind UDP {}: {}: {}", what, std::strerror(number), remedy)};
  };
  switch (number) {
    case EADDRINUSE:
      return is_range ? tell(Status::not_available, "end a process that holds one, or widen the range")
                      : tell(Status::in_use, "end the process that holds it (ss -ulpn), or choose another port");
    case EADDRNOTAVAIL:
      return tell(Status::not_available, "choose an address of this host (ip addr)");
    case EACCES:
      return tell(Status::not_permitted, "choose a port from 1024 on");
    default:
      return tell(Status::system, "choose another address");
  }
}

int bind_first_free(UdpSocket& socket, base::SocketAddress local, std::uint32_t port_count) {
  int error = EADDRINUSE;
  for (std::uint32_t step = 0; step < port_count && error == EADDRINUSE; ++step) {
    error = socket.bind_to(local);
    local.port = static_cast<std::uint16_t>(local.port + 1);
  }
  return error;
}

}  // namespace

Result<std::unique_ptr<UdpPath>> UdpPath::open(const UdpOptions& asked) {
  if (auto checked = check(asked, kHotMax); !checked) return std::unexpected(checked.error());
  UdpOptions options = asked;
  const bool takes_both = options.local.ip == base::SocketAddress{}.ip;
  auto socket = UdpSocket::make(options.local.is_v4() ? AF_INET : AF_INET6, takes_both, options);
  if (!socket && takes_both) {  // a host without IPv6
    options.local.ip[10] = options.local.ip[11] = 0xff;
    socket = UdpSocket::make(AF_INET, false, options);
  }
  if (!socket) return std::unexpected(socket.error());

  const bool is_hot_possible = options.hot_sockets_max > 0 && socket->lead_port();
  if (!is_hot_possible) options.hot_sockets_max = 0;
  if (const int error = bind_first_free(*socket, options.local, options.port_count); error != 0)
    return std::unexpected(cannot_bind(options, error));
  return make(std::move(*socket), options);
}

Result<std::unique_ptr<UdpPath>> UdpPath::adopt(base::FileDescriptor descriptor, const UdpOptions& options) {
  if (auto checked = check(options, kHotMax); !checked) return std::unexpected(checked.error());
  auto socket = UdpSocket::adopt(std::move(descriptor), options);
  if (!socket) return std::unexpected(socket.error());
  return make(std::move(*socket), options);
}

Result<std::unique_ptr<UdpPath>> UdpPath::make(UdpSocket socket, const UdpOptions& options) {
  const auto address = socket.local();
  if (!address) {
    const int number = errno;
    return std::unexpected(Error{
        Status::system, number,
        fmt::format("the kernel does not say where a UDP socket is bound: {}: try again", std::strerror(number))});
  }
  base::FileDescriptor epoll(::epoll_create1(EPOLL_CLOEXEC));
  std::unique_ptr<UdpPath> path(new UdpPath(std::move(socket), *address, std::move(epoll), options));
  if (!path->watch(0)) {
    const int number = errno;
    return std::unexpected(
        Error{Status::system, number,
              fmt::format("cannot watch a UDP socket: {}: check the limits of open files (ulimit -n) and "
                          "fs.epoll.max_user_watches",
                          std::strerror(number))});
  }
  return path;
}

UdpPath::UdpPath(UdpSocket main_socket, const base::SocketAddress& address, base::FileDescriptor epoll,
                 const UdpOptions& options)
    : epoll_(std::move(epoll)),
      address_(address),
      options_(options),
      route_mtu_(address_),
      buffers_(std::make_unique_for_overwrite<std::byte[]>(kArrivalsMax * options.arrival_bytes_max)) {
  slots_[0].socket = std::move(main_socket);
}

UdpFacts UdpPath::facts() const {
  UdpFacts facts = main().facts();
  facts.has_hot_sockets = options_.hot_sockets_max > 0;
  facts.hot_sockets = static_cast<std::uint32_t>(hot_count_);
  facts.gso_refused = gso_refused_by_closed_;
  for (const Slot& slot : slots_) facts.gso_refused += slot.socket ? slot.socket->facts().gso_refused : 0;
  return facts;
}

std::size_t UdpPath::hot_slot(const base::SocketAddress& peer) const {
  for (std::size_t slot = 1; slot <= options_.hot_sockets_max; ++slot)
    if (slots_[slot].socket && slots_[slot].socket->peer() == peer) return slot;
  return 0;
}

std::size_t UdpPath::send(std::span<const Train> trains, base::Instant) {
  for (std::size_t index = 0; index < trains.size(); ++index) {
    const Train& train = trains[index];
    const std::size_t slot = hot_count_ == 0 ? 0 : hot_slot(train.to);
    int error = 0;
    switch (slots_[slot].socket->send(train, counters_, error)) {
      case UdpSocket::Sent::done:
        break;
      case UdpSocket::Sent::later:
        counters_.send_later += 1;
        return index;
      case UdpSocket::Sent::lost:
        count_loss(error);
        if (error == EPERM) unreachable_.add({.to = train.to, .system_errno = EPERM, .is_local = true});
        break;
      case UdpSocket::Sent::too_big:
        counters_.send_too_big += 1;
        route_mtu_.forget(train.to);
        unreachable_.add({.to = train.to, .system_errno = EMSGSIZE, .is_local = true});
        break;
      case UdpSocket::Sent::failed:
        counters_.send_failed += 1;
        unreachable_.add({.to = train.to, .system_errno = error, .is_local = true});
        break;
    }
  }
  return trains.size();
}

void UdpPath::count_loss(int error) {
  counters_.send_no_buffers += error == ENOBUFS;
  counters_.send_no_memory += error == ENOMEM;
  counters_.send_not_permitted += error == EPERM;
}

std::size_t UdpPath::collect(std::span<Arrival> out, base::Instant) {
  out = out.first(std::min(out.size(), kArrivalsMax));
  std::size_t taken = drain(favourite_, out, 0);
  const bool is_cut_short = lone_streak_ > 0 && taken == 1;
  if (is_cut_short) idle_looks_ = 0;
  if (hot_count_ == 0 || is_cut_short) return taken;
  if (taken < out.size() && looks_elsewhere(taken)) taken = drain_others(out, taken);
  if (taken == out.size()) favourite_ = next_favourite();  // a flood on one socket must not starve the others
  return taken;
}

bool UdpPath::looks_elsewhere(std::size_t taken) {
  idle_looks_ = taken > 0 ? 0 : idle_looks_ + 1;
  return taken > 0 || idle_looks_ > kFaithfulLooks || idle_looks_ % kFaithfulShare == 0;
}

// Takes what the socket of `slot` has, as far as `out` has room. A lone datagram is returned at once, without the poll
// that would find nothing behind it.
std::size_t UdpPath::drain(std::size_t slot, std::span<Arrival> out, std::size_t taken) {
  UdpSocket& socket = *slots_[slot].socket;
  const std::size_t first = taken;
  bool was_emptied = false;
  for (std::size_t look = 0; look < 2 * kArrivalsMax && taken < out.size(); ++look) {
    Arrival& arrival = out[taken];
    const std::span buffer(buffers_.get() + taken * options_.arrival_bytes_max, options_.arrival_bytes_max);
    counters_.receive_calls += 1;
    const UdpSocket::Received received = socket.receive(buffer, arrival);
    if (received == UdpSocket::Received::nothing) {
      was_emptied = true;
      break;
    }
    if (received == UdpSocket::Received::truncated) [[unlikely]] {
      counters_.received_truncated += 1;
      continue;
    }
    const std::size_t bytes = arrival.bytes.size();
    counters_.bytes_received += bytes;
    counters_.datagrams_received +=
        std::max<std::size_t>(1, (bytes + arrival.datagram_size - 1) / arrival.datagram_size);
    taken += 1;
    const bool is_lone = bytes <= arrival.datagram_size;
    if (is_lone && taken - first == 1 && lone_streak_ < kLoneStreakMax) {
      lone_streak_ += 1;
      return taken;
    }
  }
  lone_streak_ = 0;
  socket.end_run(taken - first, was_emptied);
  read_errors(socket);
  if (was_emptied && slots_[slot].is_retiring) [[unlikely]]
    close_hot(slot);
  return taken;
}

std::size_t UdpPath::drain_unwatched(std::span<Arrival> out, std::size_t taken) {
  const std::size_t drained = favourite_;
  for (std::size_t slot = 0; slot <= options_.hot_sockets_max && taken < out.size(); ++slot) {
    if (slot == drained || !slots_[slot].socket) continue;
    const std::size_t before = taken;
    taken = drain(slot, out, taken);
    if (taken > before && slots_[slot].socket) favourite_ = slot;
  }
  return taken;
}

std::size_t UdpPath::drain_others(std::span<Arrival> out, std::size_t taken) {
  if (!is_watched_) return drain_unwatched(out, taken);
  std::array<epoll_event, kSlots + 1> ready;
  const int count = ::epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), 0);
  const std::size_t drained = favourite_;
  for (int index = 0; index < count && taken < out.size(); ++index) {
    const std::size_t slot = ready[static_cast<std::size_t>(index)].data.u64;
    if (slot == drained || slot == kOfGroups) continue;
    if ((ready[static_cast<std::size_t>(index)].events & EPOLLERR) != 0) slots_[slot].socket->expect_errors();
    const std::size_t before = taken;
    taken = drain(slot, out, taken);
    if (taken > before && slots_[slot].socket) favourite_ = slot;
  }
  return taken;
}

std::size_t UdpPath::next_favourite() const {
  std::size_t slot = favourite_;
  do {
    slot = (slot + 1) % kSlots;
  } while (!slots_[slot].socket);
  return slot;
}

void UdpPath::read_errors(UdpSocket& socket) {
  for (std::size_t count = 0; count < kErrorsPerRead; ++count) {
    const auto error = socket.next_error();
    if (!error) return;
    if (error->system_errno == EMSGSIZE && error->size_hint == 0) route_mtu_.forget(error->to);
    unreachable_.add(*error);
  }
}

std::size_t UdpPath::unreachable(std::span<Unreachable> out) {
  for (std::size_t slot = 0; slot <= options_.hot_sockets_max; ++slot)
    if (slots_[slot].socket) read_errors(*slots_[slot].socket);
  return unreachable_.take(out);
}

bool UdpPath::is_host_missing(const base::SocketAddress& peer) const {
  return base::is_neighbour_missing(peer);
}

void UdpPath::set_hot(const base::SocketAddress& peer, bool is_hot) {
  const std::size_t known = hot_slot(peer);
  if (known != 0) {
    // Closing a socket loses its waiting datagrams, so it is closed once it is empty.
    slots_[known].is_retiring = !is_hot;
    if (!is_hot && slots_[known].socket->is_empty()) close_hot(known);
    return;
  }
  if (!is_hot || hot_count_ >= options_.hot_sockets_max) return;
  std::size_t free = 1;
  while (slots_[free].socket) free += 1;
  if (hot_count_ >= kHotUnwatched) set_watched(true);
  slots_[free].socket = connect_beside_main(peer);
  if (!slots_[free].socket) return;
  if (is_watched_ && !watch(free)) {
    slots_[free].socket.reset();
    return;
  }
  hot_count_ += 1;
}

std::optional<UdpSocket> UdpPath::connect_beside_main(const base::SocketAddress& peer) {
  // For IPv4 the kernel requires SO_REUSEPORT at every socket that is bound to the port, also at connected ones.
  const auto let_share = [this](bool is_shared) {
    for (Slot& slot : slots_)
      if (slot.socket) slot.socket->share_port(is_shared);
  };
  const bool takes_both = address_.ip == base::SocketAddress{}.ip;
  auto beside = UdpSocket::make(main().family(), takes_both, options_);
  if (!beside || !beside->share_port(true)) return std::nullopt;
  let_share(true);
  const bool is_connected = beside->bind_to(address_) == 0 && beside->connect_to(peer) == 0;
  let_share(false);
  beside->share_port(false);
  return is_connected ? std::optional(std::move(*beside)) : std::nullopt;
}

void UdpPath::close_hot(std::size_t slot) {
  gso_refused_by_closed_ += slots_[slot].socket->facts().gso_refused;
  slots_[slot] = {};
  hot_count_ -= 1;
  if (favourite_ == slot) favourite_ = 0;
}

bool UdpPath::set_watched(bool is_watched) {
  if (is_watched == is_watched_ || (!is_watched && hot_count_ > kHotUnwatched)) return is_watched_;
  bool is_done = true;
  for (std::size_t slot = 0; slot < kSlots; ++slot) {
    if (!slots_[slot].socket) continue;
    if (is_watched) {
      is_done = (watch(slot) || errno == EEXIST) && is_done;
    } else {
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, slots_[slot].socket->descriptor(), nullptr);
    }
  }
  is_watched_ = is_watched && is_done;
  return is_watched_;
}

GroupSockets* UdpPath::groups() {
  constexpr std::array<std::uint8_t, 16> kAnyV4{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  const bool is_of_interface = address_.ip != base::SocketAddress{}.ip && address_.ip != kAnyV4;
  if (groups_ || !is_of_interface) return groups_.get();
  auto groups = std::make_unique<GroupSockets>(address_);
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kOfGroups}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, groups->descriptor(), &event) == 0) groups_ = std::move(groups);
  return groups_.get();
}

bool UdpPath::watch(std::size_t slot) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = slot;
  return epoll_.is_open() && ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, slots_[slot].socket->descriptor(), &event) == 0;
}

}  // namespace fairlead::path
