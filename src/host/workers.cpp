#include "host/workers.hpp"

#include <utility>

#include "host/service.hpp"

namespace fairlead::host {

Workers::Workers() = default;

Workers::~Workers() {
  pause();
}

void Workers::add(std::unique_ptr<Service> service) {
  workers_.push_back({.service = std::move(service), .thread = {}});
}

Result<> Workers::start() {
  for (Worker& worker : workers_) {
    if (worker.thread.is_joinable()) continue;
    auto thread = base::Thread::start([service = worker.service.get()] { service->run(); });
    if (!thread) return std::unexpected(std::move(thread.error()));
    worker.thread = std::move(*thread);
  }
  return {};
}

void Workers::pause() {
  for (const Worker& worker : workers_)
    if (worker.thread.is_joinable()) worker.service->interrupt();
  join();
}

void Workers::stop() noexcept {
  for (const Worker& worker : workers_) worker.service->stop();
}

void Workers::join() {
  for (Worker& worker : workers_) worker.thread.join();
}

bool Workers::put(std::uint32_t number, FirstCall& call) {
  return service(number).put(call);
}

}  // namespace fairlead::host
