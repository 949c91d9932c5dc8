#include "am/bundle_state.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

namespace fairlead::am {
namespace {

// The interval at which outstanding requests are checked for timeout.
constexpr base::Duration kSleepMax = std::chrono::milliseconds(100);
// The delay before a message that the engine refused is sent again.
constexpr base::Duration kHeldAgain = std::chrono::microseconds(50);
// The interval at which to check whether another thread has left the endpoint.
constexpr base::Duration kOtherThread = std::chrono::microseconds(50);

}  // namespace

BundleState::BundleState(Bundle& its_face, std::shared_ptr<DomainState> its_domain, BundleMode mode)
    : face(its_face), domain(std::move(its_domain)), lock(mode == BundleMode::parallel) {}

BundleState::~BundleState() = default;

std::unique_ptr<EndpointState> BundleState::take_out(Endpoint& endpoint) {
  std::unique_lock sleeper(waiting, std::try_to_lock);
  while (!sleeper) {
    {
      Lock held(lock);
      for (const auto& each : endpoints) domain->core->interrupt(each->port);
    }
    std::this_thread::sleep_for(kOtherThread);
    sleeper = std::unique_lock(waiting, std::try_to_lock);
  }
  Lock held(lock);
  const auto found = std::ranges::find(endpoints, &endpoint, [](const auto& each) { return &each->face; });
  if (found == endpoints.end()) return nullptr;
  EndpointState& leaving = **found;
  watch(leaving, false);
  std::unique_ptr<EndpointState> taken = std::move(*found);
  endpoints.erase(found);
  while (leaving.running != 0) {
    held.unlock();
    std::this_thread::sleep_for(kOtherThread);
    held.lock();
  }
#ifndef NDEBUG
  if (!is_inherited()) leaving.check();
#endif
  return taken;
}

void BundleState::put_in(std::unique_ptr<EndpointState> endpoint) {
  Lock held(lock);
  endpoint->bundle = this;
  watch(*endpoint, true);
  rouse();  // the sleeper does not wait for this endpoint yet
  endpoints.push_back(std::move(endpoint));
}

bool BundleState::watch(const EndpointState& endpoint, bool is_watched) {
  if (!watch_descriptor.is_open()) return true;
  const int descriptor = domain->core->descriptor(endpoint.port);
  epoll_event event{.events = EPOLLIN, .data = {}};
  return ::epoll_ctl(watch_descriptor.get(), is_watched ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, descriptor, &event) == 0;
}

unsigned BundleState::poll(Lock& held) {
  domain->core->progress();
  return serve(held);
}

unsigned BundleState::serve(Lock& held) {
  const unsigned returned_before = returned;
  for (std::size_t i = 0; i < endpoints.size(); ++i) endpoints[i]->look_after(held);
  // Round-robin, one message each: no endpoint waits for another's burst.
  unsigned left = domain->poll_max;
  std::size_t idle = 0;
  while (left > 0 && idle < endpoints.size()) {
    first = first + 1 < endpoints.size() ? first + 1 : 0;
    if (endpoints[first]->serve_one(held)) {
      idle = 0;
      --left;
    } else {
      ++idle;
    }
  }
#ifndef NDEBUG
  for (const auto& each : endpoints) each->check();
#endif
  if (left != domain->poll_max) return domain->poll_max - left;
  if (pace.may_skip()) [[likely]]
    return returned - returned_before;
  const auto now = pace.asked(base::MonotonicClock::now());
  for (std::size_t i = 0; i < endpoints.size(); ++i) endpoints[i]->check_time(held, now);
  return returned - returned_before;
}

bool BundleState::pause(Lock& held, base::Instant deadline, const std::stop_token& stop) {
  std::array<engine::PortHandle, Bundle::kEndpointsMax> ports;
  const std::size_t count = endpoints.size();
  pace.stop();
  const auto now = base::MonotonicClock::now();
  for (std::size_t i = 0; i < count; ++i) {
    ports[i] = endpoints[i]->port;
    if (!endpoints[i]->held.empty()) deadline = std::min(deadline, now + kHeldAgain);
  }
  if (outstanding() != 0) deadline = std::min(deadline, now + kSleepMax);
  std::unique_lock sleeper(waiting, std::try_to_lock);
  if (!sleeper) {
    // Wait until the sleeping thread wakes: what woke it may concern this thread, too.
    held.unlock();
    sleeper = std::unique_lock(waiting, std::chrono::steady_clock::now() + std::min(deadline - now, kSleepMax));
    if (sleeper) sleeper.unlock();
    held.lock();
    return false;
  }
  is_in_long_sleep = deadline - now > kSleepMax;
  held.unlock();
  // `waiting` is held, so the port stays open.
  const std::stop_callback wake(stop, [core = domain->core.get(), count, port = ports[0]] {
    if (count != 0) core->interrupt(port);
  });
  bool has_news = false;
  if (count != 0) {
    has_news = domain->ports->wait_any(std::span(ports).first(count), deadline);
  } else {
    std::this_thread::sleep_for(std::clamp(deadline - now, base::Duration::zero(), kHeldAgain));
  }
  held.lock();
  is_in_long_sleep = false;
  return has_news;
}

void BundleState::rouse() {
  if (!is_in_long_sleep || endpoints.empty()) [[likely]]
    return;
  is_in_long_sleep = false;
  domain->core->interrupt(endpoints.front()->port);
}

bool BundleState::has_message() const {
  return std::ranges::any_of(endpoints, [&](const auto& each) { return domain->ports->has_arrival(each->port); });
}

std::size_t BundleState::outstanding() const {
  std::size_t sum = 0;
  for (const auto& each : endpoints) sum += each->outstanding;
  return sum;
}

// The thread of interrupt mode.
void BundleState::run() {
  Lock held(lock);
  while (!is_stopping.load(std::memory_order_acquire)) {
    if (poll(held) == 0) pause(held, base::kNever);
  }
}

}  // namespace fairlead::am
