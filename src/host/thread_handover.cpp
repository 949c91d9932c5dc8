#include "host/thread_handover.hpp"

#include <fcntl.h>
#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/saved.hpp"
#include "embedded/attach.hpp"
#include "host/watch_error.hpp"
#include "shm/arena.hpp"

namespace fairlead::host {

base::FileDescriptor own_descriptor(int descriptor) {
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  return base::FileDescriptor(descriptor);
}

// Saving -------------------------------------------------------------------------------------------------------------

void ThreadHandover::part_from_local_peers(bool is_parting) {
  for (const auto& [address, engine] : service_.engines_) engine->core->part_from_local_peers(is_parting);
}

Result<> ThreadHandover::check_parted() const {
  std::string why;
  for (const auto& [address, engine] : service_.engines_)
    if (!engine->core->has_parted(why)) return std::unexpected(Error{Status::in_use, 0, std::move(why)});
  return {};
}

bool ThreadHandover::is_still() const {
  return std::ranges::all_of(service_.engines_, [](const auto& entry) { return entry.second->core->is_still(); });
}

void ThreadHandover::hold(bool is_held) {
  for (const auto& [address, engine] : service_.engines_) engine->core->hold_answers(is_held);
  for (auto& [number, attached] : service_.applications_) {
    attached.application->hold(is_held);
    service_.wake(number, attached);
  }
}

void ThreadHandover::go_on() {
  for (const auto& [address, engine] : service_.engines_) engine->core->progress();
  for (auto& [number, attached] : service_.applications_) attached.application->give_events();
  service_.drop_gone();
}

Result<> ThreadHandover::stop_engines(Handover& handover) {
  // The kernel would close these descriptors during exec(), and another user can make such a close block.
  if (service_.users_.closer().left() != 0)
    return std::unexpected(Error{Status::again, 0, "a descriptor that another user gave takes long to close"});
  for (auto& [number, attached] : service_.applications_)  // before engines freeze: a port that closes needs its engine
    if (auto possible = attached.application->save(); !possible) return std::unexpected(std::move(possible.error()));
  for (const auto& [address, engine] : service_.engines_)
    handover.frozen.push_back({service_.thread_, engine->core->freeze()});
  return {};
}

Result<> ThreadHandover::save(ServiceState& state, Handover& handover) {
  for (auto& [number, attached] : service_.applications_) {
    attached.application->give_events_of_ports();
    auto saved = attached.application->save();
    if (!saved) return std::unexpected(std::move(saved.error()));
    saved->process = attached.process.get();
    state.applications.push_back(std::move(*saved));
  }
  for (const auto& [thread, frozen] : handover.frozen) {
    if (thread != service_.thread_) continue;
    auto saved = frozen->save();
    if (!saved) {
      saved.error().message = fmt::format("the engine at {}: {}", frozen->address().to_string(), saved.error().message);
      return std::unexpected(std::move(saved.error()));
    }
    state.engines.push_back({.socket = frozen->socket(),
                             .thread = service_.thread_,
                             .is_for_any_port = service_.engines_.is_for_any_port(frozen->address()),
                             .engine = std::move(*saved)});
  }
  return {};
}

// Restoring ----------------------------------------------------------------------------------------------------------

Result<> ThreadHandover::restore(const ServiceState& state) {
  service_.bind();
  for (const ServedEngineState& saved : state.engines) {
    if (saved.thread != service_.thread_) continue;
    auto core = embedded::restore_embedded(saved.engine, own_descriptor(saved.socket), service_.options_.engine,
                                           saved.is_for_any_port && service_.thread_ == 0);
    if (!core) return std::unexpected(std::move(core.error()));
    if (const auto added = service_.engines_.restore(std::move(*core), saved.is_for_any_port); !added)
      return std::unexpected(added.error());
  }
  for (const ApplicationState& saved : state.applications) {
    if (Routes::thread_of_secret(saved.secret) != service_.thread_) continue;
    if (auto restored = restore(saved); !restored) return restored;
  }
  for (const auto& [address, engine] : service_.engines_) {
    const auto its = std::ranges::find(state.engines, address, [](const auto& one) { return one.engine.address; });
    if (auto finished = engine->core->finish(its->engine); !finished)
      return base::cannot_restore(fmt::format("the engine at {}: {}", address.to_string(), finished.error().message));
    if (auto started = engine->core->start(); !started) return started;
  }
  return {};
}

Result<> ThreadHandover::restore(const ApplicationState& saved) {
  shm::Socket socket(own_descriptor(saved.socket), service_.users_);
  base::FileDescriptor process = saved.process >= 0 ? own_descriptor(saved.process) : base::FileDescriptor();
  base::ForeignDescriptor file = service_.users_.hold(own_descriptor(saved.memory), socket.credentials());
  auto memory = shm::Arena::view(file.get(), saved.memory_bytes);
  if (!memory) return std::unexpected(std::move(memory.error()));
  const auto engine = service_.engines_.find(saved.engine);
  if (!engine) return base::cannot_restore("an application has no engine");
  auto application = Application::restore(
      saved, std::move(socket), {.memory = std::move(*memory), .file = std::move(file), .bytes = saved.memory_bytes},
      engine, [this](int descriptor) { return shm::Socket(own_descriptor(descriptor), service_.users_); });
  if (!application) return std::unexpected(std::move(application.error()));
  if (saved.pairs)
    if (auto restored = restore_pairs(*saved.pairs, **application); !restored) return restored;
  const std::uint64_t number = service_.next_number_++;
  bool is_watched =
      service_.watch((*application)->socket().descriptor(), number << Service::kIndexBits, EPOLLIN | EPOLLET);
  if (process.is_open())
    service_.watch(process.get(), number << Service::kIndexBits | Service::kProcess, EPOLLIN | EPOLLET);
  for (const ApplicationPortState& port : saved.ports)
    is_watched &= service_.watch_port(number, **application, port.index);
  if (ApplicationPairs* const pairs = (*application)->pairs(); pairs != nullptr) {
    const std::uint64_t source = number << Service::kIndexBits | Service::kPairs;
    is_watched &= service_.watch(pairs->socket().descriptor(), source, EPOLLIN | EPOLLET) &&
                  service_.watch(pairs->descriptor(), source, EPOLLIN | EPOLLET);
  }
  if (!is_watched || !service_.by_secret_.emplace(saved.secret, number).second)
    return std::unexpected(cannot_watch(errno));
  auto seat = service_.routes_->enter(service_.thread_, (*application)->socket().credentials().user, {});
  if (!seat) return std::unexpected(std::move(seat.error()));
  Service::Attached& attached = service_.applications_[number];
  attached = {.application = std::move(*application),
              .seat = std::move(*seat),
              .process = std::move(process),
              .is_parked = true};
  service_.wake(number, attached);
  return {};
}

Result<> ThreadHandover::restore_pairs(const ApplicationPairsState& saved, Application& application) {
  shm::Socket socket(own_descriptor(saved.socket), service_.users_);
  base::ForeignDescriptor rings_file = service_.users_.hold(own_descriptor(saved.rings), socket.credentials());
  base::ForeignDescriptor file = service_.users_.hold(own_descriptor(saved.memory), socket.credentials());
  auto rings = shm::Arena::view(rings_file.get(), PairLayout::bytes());
  if (!rings) return std::unexpected(std::move(rings.error()));
  auto memory = shm::Arena::view(file.get(), saved.memory_bytes);
  if (!memory) return std::unexpected(std::move(memory.error()));
  return application.restore_pairs(
      service_.pair_tools_,
      {.rings = std::move(*rings),
       .rings_file = std::move(rings_file),
       .regions = {.memory = std::move(*memory), .file = std::move(file), .bytes = saved.memory_bytes}},
      std::move(socket), saved);
}

}  // namespace fairlead::host
