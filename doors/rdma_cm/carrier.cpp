#include "doors/rdma_cm/carrier.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <charconv>

#include "base/log.hpp"

namespace fairlead::rdma_cm {
namespace {

constexpr unsigned kPortal = 37;  // the portal of connection managers
constexpr unsigned kListenerTmid = 1;

std::string nid_of(const Ip& ip) {
  return is_v4(ip) ? fmt::format("{}@udp", to_text(ip)) : fmt::format("[{}]@udp", to_text(ip));
}

void tell_error(const Error& error) {
  base::log(LogLevel::error, LogTopic::verbs, {}, "connection manager: " + error.message);
}

int errno_of_start(const Error& error) {
  switch (error.status) {
    case Status::in_use:
    case Status::not_available:
      return EADDRINUSE;
    case Status::system:
      return error.system_errno != 0 ? error.system_errno : EIO;
    default:
      return to_errno(error.status);
  }
}

}  // namespace

std::string listener_address(const Ip& ip, std::uint16_t port) {
  return fmt::format("{}:{}:{}:{}", nid_of(ip), port, kPortal, kListenerTmid);
}

std::optional<Ip> ip_of_address(std::string_view address) {
  const auto at = address.find('@');
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view ip = address.substr(0, at);
  if (ip.starts_with('[') && ip.ends_with(']')) ip = ip.substr(1, ip.size() - 2);
  return ip_of(ip);
}

std::optional<std::uint16_t> port_of_address(std::string_view address) {
  const auto at = address.find('@');
  const auto before = at != std::string_view::npos ? address.find(':', at) : at;
  if (before == std::string_view::npos) return std::nullopt;
  std::uint16_t port = 0;
  const char* const end = address.data() + address.size();
  const auto [after, error] = std::from_chars(address.data() + before + 1, end, port);
  return error == std::errc{} && (after == end || *after == ':') ? std::optional(port) : std::nullopt;
}

struct Carrier::End {
  explicit End(net::Domain& domain) : machine(domain) {}

  Ip local{};
  std::uint16_t port = 0;
  unsigned users = 1;
  net::TransferMachine machine;
  std::vector<std::unique_ptr<net::Buffer>> receives;
};

struct Carrier::Outgoing {
  std::unique_ptr<net::Buffer> buffer;
  net::EndPoint to;
  std::uint64_t tag = 0;
};

Carrier::Carrier(int wake, Duration patience) : wake_(wake), patience_(patience) {}

Carrier::~Carrier() {
  for (auto& [place, end] : ends_) [[maybe_unused]]
    const auto stopped = end->machine.stop_and_wait(net::StopMode::abort);
  ends_.clear();
}

void Carrier::wake() const {
  ::eventfd_write(wake_, 1);
}

int Carrier::start(End& end, const std::string& address) {
  if (const auto started = end.machine.start_and_wait(address); !started) {
    const int error = errno_of_start(started.error());
    if (error != EADDRINUSE) tell_error(started.error());
    return error;
  }
  for (std::size_t i = 0; i < kReceives; ++i) {
    auto buffer = net::Buffer::allocate(*domain_, kReceiveSize);
    if (!buffer) return ENOMEM;
    (*buffer)->set_callback(net::QueueKind::message_receive,
                            [this, &end](const net::BufferEvent& event) { receive(end, event); });
    end.receives.push_back(std::move(*buffer));
  }
  const net::MessageReceive operation{.size_min = kMessageSizeMax, .messages_max = kReceiveSize / kMessageSizeMax};
  for (const auto& buffer : end.receives) {
    if (end.machine.add(*buffer, operation) != Status::ok) return ENOMEM;
  }
  return 0;
}

int Carrier::listen(const Ip& local, std::uint16_t port) {
  if (const auto found = ends_.find({local, port}); found != ends_.end()) {
    ++found->second->users;
    return 0;
  }
  return listen_at(local, port);
}

int Carrier::open_domain() {
  if (domain_) return 0;
  auto opened = net::Domain::open();
  if (!opened) {
    tell_error(opened.error());
    return EINVAL;
  }
  domain_.emplace(std::move(*opened));
  return 0;
}

int Carrier::listen_at(const Ip& local, std::uint16_t port) {
  if (const int error = open_domain(); error != 0) return error;
  auto& end = ends_[{local, port}];
  end = std::make_unique<End>(*domain_);
  end->local = local;
  end->port = port;
  const int error =
      start(*end, port != 0 ? listener_address(local, port) : fmt::format("{}:*:{}:*", nid_of(local), kPortal));
  if (error != 0) unlisten(local, port);
  return error;
}

void Carrier::unlisten(const Ip& local, std::uint16_t port) {
  const auto found = ends_.find({local, port});
  if (found == ends_.end() || --found->second->users > 0) return;
  End* const end = found->second.get();
  [[maybe_unused]] const auto stopped = end->machine.stop_and_wait(net::StopMode::abort);
  {
    const std::lock_guard guard(inbox_);
    std::erase_if(emptied_, [end](const auto& each) { return each.first == end; });
  }
  ends_.erase(found);
}

Carrier::End* Carrier::home(const Ip& local) {
  return ends_.contains({local, 0}) || listen_at(local, 0) == 0 ? ends_.at({local, 0}).get() : nullptr;
}

std::unique_ptr<Carrier::Outgoing> Carrier::take_outgoing() {
  {
    const std::lock_guard guard(inbox_);
    if (!free_.empty()) {
      auto taken = std::move(free_.back());
      free_.pop_back();
      return taken;
    }
    if (sent_.size() >= kSendsMax) return nullptr;
  }
  auto buffer = net::Buffer::allocate(*domain_, kMessageSizeMax);
  if (!buffer) return nullptr;
  auto made = std::make_unique<Outgoing>();
  made->buffer = std::move(*buffer);
  made->buffer->set_callback(net::QueueKind::message_send,
                             [this, made = made.get()](const net::BufferEvent& event) { finish(*made, event.status); });
  return made;
}

Status Carrier::send(const Ip& local, const std::string& to, const Message& message, std::uint64_t tag) {
  End* const end = home(local);
  if (end == nullptr) return Status::unreachable;
  auto end_point = end->machine.create_end_point(to);
  if (!end_point) return end_point.error().status;
  auto outgoing = take_outgoing();
  if (!outgoing) return Status::again;
  std::array<std::byte, kMessageSizeMax> bytes;
  const std::size_t length = encode(message, bytes);
  outgoing->buffer->write(0, std::span(bytes).first(length));
  outgoing->to = std::move(*end_point);
  outgoing->tag = tag;
  Outgoing& sent = *outgoing;
  {
    const std::lock_guard guard(inbox_);
    sent_.emplace(&sent, std::move(outgoing));
  }
  const Status status = end->machine.add(
      *sent.buffer,
      net::MessageSend{
          .to = sent.to, .length = length, .deadline = Instant::clock::now() + patience_, .is_confirmed = true});
  if (status != Status::ok) {
    const std::lock_guard guard(inbox_);
    free_.push_back(std::move(sent_.extract(&sent).mapped()));
  }
  return status;
}

void Carrier::finish(Outgoing& outgoing, Status status) {
  {
    const std::lock_guard guard(inbox_);
    collected_.outcomes.push_back({.tag = outgoing.tag, .status = status});
    outgoing.to = {};
    free_.push_back(std::move(sent_.extract(&outgoing).mapped()));
  }
  wake();
}

void Carrier::receive(End& end, const net::BufferEvent& event) {
  {
    const std::lock_guard guard(inbox_);
    if (event.status == Status::ok) {
      if (auto message = decode(event.buffer.bytes(event.offset, event.length))) {
        if (message->kind != Kind::alive || message->to != 0)
          collected_.deliveries.push_back({.local = end.local,
                                           .port = end.port,
                                           .from = std::string(event.sender.address()),
                                           .message = std::move(*message)});
      } else {
        ++malformed_;
      }
      if (event.is_final) emptied_.emplace_back(&end, &event.buffer);
    }
  }
  wake();
}

Carrier::Collected Carrier::collect() {
  Collected collected;
  std::vector<std::pair<End*, net::Buffer*>> emptied;
  {
    const std::lock_guard guard(inbox_);
    std::swap(collected, collected_);
    std::swap(emptied, emptied_);
  }
  const net::MessageReceive operation{.size_min = kMessageSizeMax, .messages_max = kReceiveSize / kMessageSizeMax};
  for (const auto& [end, buffer] : emptied)
    static_cast<void>(end->machine.add(*buffer, operation));  // fails if the machine is stopping
  return collected;
}

std::uint64_t Carrier::malformed() const {
  const std::lock_guard guard(inbox_);
  return malformed_;
}

}  // namespace fairlead::rdma_cm
