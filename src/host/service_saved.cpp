// Hands the host engine over to the next program in this process: quiescing, saving, restoring.

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "base/log.hpp"
#include "host/service.hpp"
#include "host/watch_error.hpp"
#include "shm/arena.hpp"

namespace fairlead::host {
namespace {

constexpr base::Duration kRestWithin = std::chrono::milliseconds(100);

std::unexpected<Error> cannot_resume(std::string message) {
  return std::unexpected(Error{Status::invalid, 0, std::move(message)});
}

/// Sets close-on-exec: other programs that we start must not inherit the descriptor.
base::FileDescriptor own(int descriptor) {
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  return base::FileDescriptor(descriptor);
}

}  // namespace

// Saving -------------------------------------------------------------------------------------------------------------

void Service::refuse_replacement(const Error& why) {
  base::log(LogLevel::warning, LogTopic::engine, {}, fmt::format("not replaced, going on as before: {}", why.message));
  if (asker_.is_open()) send_failure(asker_, why);
  asker_ = {};
}

Result<Handover> Service::hand_over() {
  if (!workers_.is_empty()) {
    return std::unexpected(Error{Status::not_supported, 0,
                                 "it serves with several threads (--threads), whose state cannot be handed over yet: "
                                 "restart it instead"});
  }
  const base::Instant began = base::MonotonicClock::now();
  hold(true);
  const auto is_in_time = [began] { return base::MonotonicClock::now() - began < kRestWithin; };
  Result<Handover> handover = std::unexpected(Error{});
  do {
    do {
      for (const auto& [address, engine] : engines_) engine->core->progress();
      for (auto& [number, attached] : applications_) attached.application->give_events();
      drop_gone();
    } while (!is_still() && is_in_time());
    handover = try_to_save(began);
  } while (!handover && handover.error().status == Status::again && is_in_time());
  if (handover) return handover;
  hold(false);
  if (handover.error().status == Status::again)
    handover.error().message += fmt::format(", for {} ms", kRestWithin / std::chrono::milliseconds(1));
  return handover;
}

void Service::go_on(Handover handover) {
  handover = {};
  hold(false);
}

bool Service::is_still() const {
  return std::ranges::all_of(engines_, [](const auto& entry) { return entry.second->core->is_still(); });
}

/// While held, nothing new goes to the network.
void Service::hold(bool is_held) {
  for (const auto& [address, engine] : engines_) engine->core->hold_answers(is_held);
  for (auto& [number, attached] : applications_) {
    attached.application->hold(is_held);
    wake(number, attached);
  }
}

Result<Handover> Service::try_to_save(base::Instant began) try {
  // The kernel would close these descriptors during exec(), and another user can make such a close block.
  if (users_.closer().left() != 0)
    return std::unexpected(Error{Status::again, 0, "a descriptor that another user gave takes long to close"});
  Handover handover;
  ServiceState state{.listener = listener_.descriptor(),
                     .is_inherited = is_inherited_,
                     .asker = asker_.descriptor(),
                     .visitors = {},
                     .engines = {},
                     .applications = {},
                     .stopped_at = began,
                     .file = options_.file};
  visitors_.for_each([&](const Visitor& visitor) {
    state.visitors.push_back({.socket = visitor.socket.descriptor(), .came_at = visitor.came_at});
  });
  for (auto& [number, attached] : applications_)  // before engines freeze: a port that closes needs its engine
    if (auto possible = attached.application->save(); !possible) return std::unexpected(std::move(possible.error()));
  for (const auto& [address, engine] : engines_) handover.frozen.push_back(engine->core->freeze());
  for (auto& [number, attached] : applications_) {
    attached.application->give_events_of_ports();
    auto saved = attached.application->save();
    if (!saved) return std::unexpected(std::move(saved.error()));
    saved->process = attached.process.get();
    state.applications.push_back(std::move(*saved));
  }
  for (const auto& frozen : handover.frozen) {
    auto saved = frozen->save();
    if (!saved) {
      saved.error().message = fmt::format("the engine at {}: {}", frozen->address().to_string(), saved.error().message);
      return std::unexpected(std::move(saved.error()));
    }
    state.engines.push_back({.socket = frozen->socket(), .engine = std::move(*saved)});
  }
  handover.state = encode(state);
  handover.descriptors = state.descriptors();
  return handover;
} catch (const std::bad_alloc&) {
  return std::unexpected(Error{Status::no_memory, ENOMEM, "no memory for the state"});
}

// Restoring ----------------------------------------------------------------------------------------------------------

Result<> Service::check(const ServiceOptions& options, std::span<const std::byte> bytes) {
  const auto state = decode_state(bytes);
  if (!state) return std::unexpected(state.error());
  if (state->file != options.file) {
    return cannot_resume(
        fmt::format("--socket changed from {} to {}, which needs a restart", state->file, options.file));
  }
  for (const ServedEngineState& one : state->engines)
    if (auto tried = embedded::try_to_restore(one.engine, options.engine); !tried) return tried;
  return {};
}

Result<std::unique_ptr<Service>> Service::resume(ServiceOptions options, std::span<const std::byte> bytes) {
  auto state = decode_state(bytes);
  if (!state) return std::unexpected(std::move(state.error()));
  const auto name = socket_name(options.file);
  if (!name) return std::unexpected(name.error());
  auto service = make(options);
  if (!service) return service;
  auto listener = shm::Listener::adopt(own(state->listener), state->is_inherited ? std::nullopt : std::optional(*name),
                                       (*service)->users_);
  if (!listener) return std::unexpected(std::move(listener.error()));
  (*service)->is_inherited_ = state->is_inherited;
  if (auto taken = (*service)->listen_at(std::move(*listener)); !taken) return std::unexpected(taken.error());
  if (auto restored = (*service)->restore(*state); !restored) return std::unexpected(restored.error());
  return service;
}

Result<> Service::restore(const ServiceState& state) {
  for (const ServedEngineState& saved : state.engines) {
    auto core = embedded::restore_embedded(saved.engine, own(saved.socket), options_.engine);
    if (!core) return std::unexpected(std::move(core.error()));
    if (const auto added = engines_.add(std::move(*core)); !added) return std::unexpected(added.error());
  }
  for (const ApplicationState& saved : state.applications)
    if (auto restored = restore(saved); !restored) return restored;
  for (const auto& [address, engine] : engines_) {
    const auto its = std::ranges::find(state.engines, address, [](const auto& one) { return one.engine.address; });
    if (auto finished = engine->core->finish(its->engine); !finished)
      return cannot_resume(fmt::format("the engine at {}: {}", address.to_string(), finished.error().message));
    if (auto started = engine->core->start(); !started) return started;
  }
  for (const VisitorState& saved : state.visitors) {
    shm::Socket visitor(own(saved.socket), users_);
    if (watch(visitor.descriptor(), kVisitors, EPOLLIN | EPOLLET)) visitors_.add(std::move(visitor), saved.came_at);
  }
  const auto pause = base::MonotonicClock::now() - state.stopped_at;
  base::log(LogLevel::info, LogTopic::engine, {},
            fmt::format("serves {} applications after an interruption of {:.1f} ms", applications_.size(),
                        std::chrono::duration<double, std::milli>(pause).count()));
  if (state.asker >= 0) {
    const shm::Socket asker(own(state.asker), users_);
    send_answer(asker, {}, fmt::format("{:.1f} ms", std::chrono::duration<double, std::milli>(pause).count()));
  }
  return {};
}

Result<> Service::restore(const ApplicationState& saved) {
  shm::Socket socket(own(saved.socket), users_);
  base::FileDescriptor process = saved.process >= 0 ? own(saved.process) : base::FileDescriptor();
  base::ForeignDescriptor file = users_.hold(own(saved.memory), socket.credentials());
  auto memory = shm::Arena::view(file.get(), saved.memory_bytes);
  if (!memory) return std::unexpected(std::move(memory.error()));
  const auto engine = engines_.find(saved.engine);
  if (!engine) return cannot_resume("an application has no engine");
  auto application = Application::restore(
      saved, std::move(socket), {.memory = std::move(*memory), .file = std::move(file), .bytes = saved.memory_bytes},
      engine, [this](int descriptor) { return shm::Socket(own(descriptor), users_); });
  if (!application) return std::unexpected(std::move(application.error()));
  if (saved.pairs)
    if (auto restored = restore_pairs(*saved.pairs, **application); !restored) return restored;
  const std::uint64_t number = next_number_++;
  bool is_watched = watch((*application)->socket().descriptor(), number << kIndexBits, EPOLLIN | EPOLLET);
  if (process.is_open()) watch(process.get(), number << kIndexBits | kProcess, EPOLLIN | EPOLLET);
  for (const ApplicationPortState& port : saved.ports) is_watched &= watch_port(number, **application, port.index);
  if (ApplicationPairs* const pairs = (*application)->pairs(); pairs != nullptr) {
    const std::uint64_t source = number << kIndexBits | kPairs;
    is_watched &= watch(pairs->socket().descriptor(), source, EPOLLIN | EPOLLET) &&
                  watch(pairs->descriptor(), source, EPOLLIN | EPOLLET);
  }
  if (!is_watched || !by_secret_.emplace(saved.secret, number).second) return std::unexpected(cannot_watch(errno));
  auto seat = routes_->enter(thread_, (*application)->socket().credentials().user, {});
  if (!seat) return std::unexpected(std::move(seat.error()));
  Attached& attached = applications_[number];
  attached = {.application = std::move(*application),
              .seat = std::move(*seat),
              .process = std::move(process),
              .is_parked = true};
  wake(number, attached);
  return {};
}

Result<> Service::restore_pairs(const ApplicationPairsState& saved, Application& application) {
  shm::Socket socket(own(saved.socket), users_);
  base::ForeignDescriptor rings_file = users_.hold(own(saved.rings), socket.credentials());
  base::ForeignDescriptor file = users_.hold(own(saved.memory), socket.credentials());
  auto rings = shm::Arena::view(rings_file.get(), PairLayout::bytes());
  if (!rings) return std::unexpected(std::move(rings.error()));
  auto memory = shm::Arena::view(file.get(), saved.memory_bytes);
  if (!memory) return std::unexpected(std::move(memory.error()));
  return application.restore_pairs(
      pair_tools_,
      {.rings = std::move(*rings),
       .rings_file = std::move(rings_file),
       .regions = {.memory = std::move(*memory), .file = std::move(file), .bytes = saved.memory_bytes}},
      std::move(socket), saved);
}

}  // namespace fairlead::host
