// Hands the host engine over to the next program in this process: quiescing, saving, restoring.

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "base/log.hpp"
#include "base/saved.hpp"
#include "host/service.hpp"
#include "host/thread_handover.hpp"
#include "host/watch_error.hpp"

namespace fairlead::host {
namespace {

constexpr base::Duration kRestWithin = std::chrono::milliseconds(100);

}  // namespace

// Saving -------------------------------------------------------------------------------------------------------------

void Service::refuse_replacement(const Error& why) {
  base::log(LogLevel::warning, LogTopic::engine, {}, fmt::format("not replaced, going on as before: {}", why.message));
  workers_.pause();
  for_each_thread([](Service& one) { ThreadHandover(one).part_from_local_peers(false); });
  if (asker_.is_open()) send_failure(asker_, why);
  asker_ = {};
}

template <typename Visit>
void Service::for_each_thread(Visit&& visit) {
  visit(*this);
  workers_.for_each(visit);
}

// The other threads end first, so this one may use their services. run() starts them again.
Result<Handover> Service::hand_over() {
  const base::Instant began = base::MonotonicClock::now();
  workers_.pause();
  for_each_thread([](Service& one) { ThreadHandover(one).part_from_local_peers(true); });
  Result<> parted;
  for_each_thread([&](Service& one) {
    if (parted) parted = ThreadHandover(one).check_parted();
  });
  if (!parted) return std::unexpected(std::move(parted.error()));
  for_each_thread([](Service& one) { ThreadHandover(one).hold(true); });
  const auto is_in_time = [began] { return base::MonotonicClock::now() - began < kRestWithin; };
  Result<Handover> handover = std::unexpected(Error{});
  do {
    bool are_still = false;
    do {
      are_still = true;
      for_each_thread([](Service& one) { ThreadHandover(one).go_on(); });
      for_each_thread([&](Service& one) { are_still &= ThreadHandover(one).is_still(); });
    } while (!are_still && is_in_time());
    handover = try_to_save(began);
  } while (!handover && handover.error().status == Status::again && is_in_time());
  if (handover) return handover;
  for_each_thread([](Service& one) { ThreadHandover(one).hold(false); });
  if (handover.error().status == Status::again)
    handover.error().message += fmt::format(", for {} ms", kRestWithin / std::chrono::milliseconds(1));
  return handover;
}

void Service::go_on(Handover handover) {
  handover = {};
  for_each_thread([](Service& one) { ThreadHandover(one).hold(false); });
}

Result<Handover> Service::try_to_save(base::Instant began) try {
  Handover handover;
  ServiceState state{.threads = routes_->threads(),
                     .listener = listener_.descriptor(),
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
  Result<> done;
  const auto if_good = [&done](auto&& step) {
    return [&done, step](Service& one) {
      if (done) done = step(one);
    };
  };
  // All engines stop before one is saved: they may be each other's peers.
  for_each_thread(if_good([&](Service& one) { return ThreadHandover(one).stop_engines(handover); }));
  for_each_thread(if_good([&](Service& one) { return ThreadHandover(one).save(state, handover); }));
  if (!done) return std::unexpected(std::move(done.error()));
  handover.state = encode(state);
  handover.descriptors = state.descriptors();
  return handover;
} catch (const std::bad_alloc&) {
  return std::unexpected(Error{Status::no_memory, ENOMEM, "no memory for the state"});
}

// Restoring ----------------------------------------------------------------------------------------------------------

Result<> Service::check_unchanged(const ServiceOptions& options, const ServiceState& state) {
  if (state.file != options.file) {
    return base::cannot_restore(
        fmt::format("--socket changed from {} to {}, which needs a restart", state.file, options.file));
  }
  if (state.threads != options.threads) {
    return base::cannot_restore(
        fmt::format("--threads changed from {} to {}, which needs a restart", state.threads, options.threads));
  }
  return {};
}

Result<> Service::check(const ServiceOptions& options, std::span<const std::byte> bytes) {
  const auto state = decode_state(bytes);
  if (!state) return std::unexpected(state.error());
  if (auto unchanged = check_unchanged(options, *state); !unchanged) return unchanged;
  for (const ServedEngineState& one : state->engines)
    if (auto tried = embedded::try_to_restore(one.engine, options.engine); !tried) return tried;
  return {};
}

Result<std::unique_ptr<Service>> Service::resume(ServiceOptions options, std::span<const std::byte> bytes) {
  auto state = decode_state(bytes);
  if (!state) return std::unexpected(std::move(state.error()));
  if (auto unchanged = check_unchanged(options, *state); !unchanged) return std::unexpected(unchanged.error());
  const auto name = socket_name(options.file);
  if (!name) return std::unexpected(name.error());
  auto service = make(options);
  if (!service) return service;
  auto listener = shm::Listener::adopt(own_descriptor(state->listener),
                                       state->is_inherited ? std::nullopt : std::optional(*name), (*service)->users_);
  if (!listener) return std::unexpected(std::move(listener.error()));
  (*service)->is_inherited_ = state->is_inherited;
  if (auto taken = (*service)->listen_at(std::move(*listener)); !taken) return std::unexpected(taken.error());
  if (auto restored = (*service)->restore(*state); !restored) return std::unexpected(restored.error());
  return service;
}

Result<> Service::restore(const ServiceState& state) {
  Result<> done;
  for_each_thread([&](Service& one) {
    if (done) done = ThreadHandover(one).restore(state);
  });
  if (!done) return done;
  // All engines of this process are there: some are each other's peers.
  for (const ServedEngineState& saved : state.engines)
    for_each_thread([&](Service& one) {
      if (const auto engine = one.thread_ == saved.thread ? one.engines_.find(saved.engine.address) : nullptr)
        engine->core->meet_again(saved.engine);
    });
  for (const VisitorState& saved : state.visitors) {
    shm::Socket visitor(own_descriptor(saved.socket), users_);
    if (watch(visitor.descriptor(), kVisitors, EPOLLIN | EPOLLET)) visitors_.add(std::move(visitor), saved.came_at);
  }
  const auto pause = base::MonotonicClock::now() - state.stopped_at;
  base::log(LogLevel::info, LogTopic::engine, {},
            fmt::format("serves {} applications after an interruption of {:.1f} ms", applications(),
                        std::chrono::duration<double, std::milli>(pause).count()));
  if (state.asker >= 0) {
    const shm::Socket asker(own_descriptor(state.asker), users_);
    send_answer(asker, {}, fmt::format("{:.1f} ms", std::chrono::duration<double, std::milli>(pause).count()));
  }
  return {};
}

}  // namespace fairlead::host
