// Rare operations: attaching, ports, facts.

#include "host/host_core.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/ensure.hpp"
#include "base/log.hpp"
#include "engine/application_counters.hpp"
#include "host/host_active.hpp"
#include "host/listing.hpp"
#include "host/peer_facts.hpp"

namespace fairlead::host {
namespace {

std::string text_of(Result<Answered> answered) {
  return answered ? std::move(answered->text) : std::move(answered.error().message);
}

}  // namespace

Result<std::shared_ptr<HostCore>> HostCore::attach(const std::string& file, const base::SocketAddress& local,
                                                   const engine::EngineOptions& options) {
  auto name = socket_name(file);
  if (!name) return std::unexpected(std::move(name.error()));
  auto memory = ClientMemory::create();
  if (!memory) return std::unexpected(std::move(memory.error()));
  std::shared_ptr<HostCore> core(new HostCore(std::move(*memory), options));
  auto socket = shm::Socket::connect(*name, core->host_.users());
  if (!socket) {
    if (socket.error().status == Status::refused)
      socket.error().message += ": start fairleadd, or set FAIRLEAD_CORE=embedded";
    if (socket.error().system_errno == EACCES) {
      socket.error().message += fmt::format(
          ": start fairleadd with --allow-user {}, and let that user into the directory; or set FAIRLEAD_CORE=embedded",
          ::geteuid());
    }
    return std::unexpected(std::move(socket.error()));
  }
  const Call call{.kind = static_cast<std::uint32_t>(Call::Kind::attach),
                  .memory_bytes = core->host_.memory().bytes(),
                  .address = to_plain(local)};
  const int memory_file = core->host_.memory().descriptor();
  const auto answered = make_call(*socket, call, {&memory_file, 1});
  if (!answered) return std::unexpected(answered.error());
  core->request_memory_.emplace(core->host_.memory().requests());
  auto requests = queue::Producer::attach(*core->request_memory_);
  if (!requests) return std::unexpected(std::move(requests.error()));
  core->requests_ = std::move(*requests);
  core->file_ = file;
  core->host_.connect(std::move(*socket));
  core->address_ = from_plain(answered->answer.address);
  core->epoch_ = answered->answer.epoch;
  core->message_size_max_ = answered->answer.message_size_max;
  core->secret_ = answered->answer.application;
  core->operations_.limit(answered->answer.operations_max);
  core->event_room_.set_most(std::min(answered->answer.number, kEventsOfAllMax));
  return core;
}

HostCore::HostCore(std::shared_ptr<ClientMemory> memory, const engine::EngineOptions& options)
    : host_(std::move(memory), options),
      idle_polls_(options.wait()),
      wait_choice_(options.wait()),
      active_(std::make_unique<HostActive>(*this)) {}

engine::ActivePorts* HostCore::active_ports() {
  return active_.get();
}

// In the child of a fork, the queue pairs belong to the parent.
HostCore::~HostCore() {
  if (mark_.is_inherited()) base::keep_for_ever(std::shared_ptr<HostPairs>(std::move(pairs_)));
}

Result<> HostCore::open_pairs() {
  const std::scoped_lock calls(call_mutex_);
  if (pairs_) return {};
  auto pairs = HostPairs::open(host_, file_, secret_, wait_choice_);
  if (!pairs) return std::unexpected(std::move(pairs.error()));
  pairs_ = std::move(*pairs);
  return {};
}

ClientPort& HostCore::find(engine::PortHandle port) const {
  ClientPort* const found = port.slot < kPortsMax ? ports_[port.slot].get() : nullptr;
  ENSURE(found != nullptr && found->generation() == port.generation, "port slot {} used after it was closed",
         port.slot);
  return *found;
}

Result<engine::PortHandle> HostCore::open(std::uint32_t first, std::uint32_t count, std::uint32_t& number) {
  const std::scoped_lock calls(call_mutex_);
  const auto unused = std::ranges::find_if(ports_, [](const auto& port) { return port == nullptr; });
  if (unused == ports_.end()) {
    return std::unexpected(
        Error{Status::no_memory, 0,
              fmt::format("this process has {} ports at the host engine, the most one may have", kPortsMax)});
  }
  const auto index = static_cast<std::uint32_t>(unused - ports_.begin());
  auto events = ClientPort::make_events(host_.memory(), index);
  if (!events) return std::unexpected(std::move(events.error()));
  const auto name = socket_name(file_);
  auto socket = shm::Socket::connect(*name, host_.users());
  if (!socket) return std::unexpected(std::move(socket.error()));
  const Call call{.kind = static_cast<std::uint32_t>(Call::Kind::open_port),
                  .index = index,
                  .number = first,
                  .count = count,
                  .application = secret_};
  auto answered = make_call(*socket, call);
  if (!answered) {
    if (answered.error().status == Status::restarted)
      answered.error().message += ": stop this transfer machine, and start it again";
    return std::unexpected(std::move(answered.error()));
  }
  number = answered->answer.number;
  auto port = std::make_unique<ClientPort>(std::move(*socket), std::move(*events), host_.memory(), event_room_, index,
                                           ports_opened_++);
  const engine::PortHandle handle{index, port->generation()};
  const std::scoped_lock lock(mutex_);
  ports_[index] = std::move(port);
  return handle;
}

// Operations that the host engine has not ended by then end silently: their events are gone with the port. Waits while
// the host engine lives, because until it answers it may access the memory of pending operations.
void HostCore::close_port(engine::PortHandle handle) {
  if (mark_.is_inherited()) return;
  // The host engine reads the ring independently of its sockets. Answers of active messages go out before the port is
  // closed, and no request is left for the next port with this index.
  wait_until_all_are_served();
  const std::scoped_lock calls(call_mutex_);
  const Call call{.kind = static_cast<std::uint32_t>(Call::Kind::close_port), .index = handle.slot};
  while (!has_ended()) {
    const auto answered = make_call(find(handle).socket(), call);
    if (answered) break;
    if (answered.error().status == Status::silent) {
      base::log(LogLevel::warning, LogTopic::engine, address_.to_string(),
                fmt::format("a port is not closed yet: {}", answered.error().message));
    } else {
      host_.note_end();
    }
  }
  std::unique_lock lock(mutex_);
  const auto index = static_cast<std::uint16_t>(handle.slot);
  for (auto* operation = operations_.first_of(index); operation != nullptr;) {
    const std::uint32_t next = ClientOperations::handle_of(*operation).slot + 1;
    end(*operation);
    operation = operations_.first_of(index, next);
  }
  const auto port = std::move(ports_[handle.slot]);
  lock.unlock();
}

engine::Core::AllocateShared HostCore::allocate_shared() {
  return
      [weak = std::weak_ptr(host_.shared_memory()), mark = mark_](std::uint64_t bytes) -> std::shared_ptr<std::byte> {
        auto memory = mark.is_inherited() ? nullptr : weak.lock();
        return memory ? ClientMemory::allocate(std::move(memory), bytes) : nullptr;
      };
}

// Returns this application's counters, and those of the engine, which include other applications' traffic.
observe::EngineFacts HostCore::facts() const {
  observe::EngineFacts facts{.path = "host", .counters = {}, .peers = {}};
  facts.add("host.", engine::kApplicationCounterRows,
            engine::ApplicationCounters{.requests = counters_.requests.load(std::memory_order_relaxed),
                                        .copied_bytes = counters_.copied_bytes.load(std::memory_order_relaxed),
                                        .wakes = host_.wakes(),
                                        .moved_bytes = pairs_ ? pairs_->moved_bytes() : 0});
  const auto answered = call({.kind = std::to_underlying(Call::Kind::counters)});
  if (!answered) return facts;
  for (auto& counter : decode_counters(answered->text)) facts.counters.push_back(std::move(counter));
  return facts;
}

std::string HostCore::describe_failure(const base::SocketAddress& address, Status status) const {
  return text_of(call({.kind = std::to_underlying(Call::Kind::describe_peer),
                       .number = std::to_underlying(status),
                       .address = to_plain(address)}));
}

std::string HostCore::describe_flight(const base::SocketAddress& address) const {
  return text_of(call({.kind = std::to_underlying(Call::Kind::describe_flight), .address = to_plain(address)}));
}

transport::PeerFacts HostCore::peer_facts(const base::SocketAddress& address) const {
  const auto answered = call({.kind = std::to_underlying(Call::Kind::peer_facts), .address = to_plain(address)});
  return answered ? facts_from(answered->answer) : transport::PeerFacts{.problem = transport::PeerProblem::other};
}

Result<Answered> HostCore::call(const Call& call) const {
  if (mark_.is_inherited()) return std::unexpected(Error{Status::bad_state, 0, {}});
  const std::scoped_lock calls(call_mutex_);
  const auto sleeper = host_.take_socket();  // a sleeper would take the answer for a nudge
  if (has_ended()) return std::unexpected(Error{Status::restarted, 0, "the host engine has ended"});
  return make_call(host_.socket(), call);
}

}  // namespace fairlead::host
