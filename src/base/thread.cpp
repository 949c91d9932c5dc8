#include "base/thread.hpp"

#include <signal.h>

#include <cstring>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/affinity.hpp"
#include "base/ensure.hpp"

namespace fairlead::base {
namespace {

using Work = std::function<void()>;

void* run(void* work) noexcept {
  (*std::unique_ptr<Work>(static_cast<Work*>(work)))();
  return nullptr;
}

/// A confined thread does not confine those that it starts: they begin with the processors that it had before.
int create(pthread_t& id, Work* work) {
  const cpu_set_t* const cpus = cpus_before_confinement();
  if (cpus == nullptr) return ::pthread_create(&id, nullptr, &run, work);
  pthread_attr_t wishes;
  if (const int error = ::pthread_getattr_default_np(&wishes); error != 0) return error;
  ::pthread_attr_setaffinity_np(&wishes, sizeof *cpus, cpus);
  const int error = ::pthread_create(&id, &wishes, &run, work);
  ::pthread_attr_destroy(&wishes);
  return error;
}

sigset_t signals_of_programs() {
  sigset_t signals;
  ::sigfillset(&signals);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) ::sigdelset(&signals, fault);
  return signals;
}

}  // namespace

Result<Thread> Thread::start(Work work) {
  auto kept = std::make_unique<Work>(std::move(work));
  const sigset_t blocked = signals_of_programs();
  sigset_t before;
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  Thread thread;
  const int error = create(thread.id_, kept.get());
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) {
    return std::unexpected(
        Error{Status::system, error,
              fmt::format("no thread: {}: raise the limit of threads (ulimit -u)", std::strerror(error))});
  }
  kept.release();
  thread.is_joinable_ = true;
  return thread;
}

Thread::Thread(Thread&& other) noexcept
    : id_(other.id_), is_joinable_(std::exchange(other.is_joinable_, false)), mark_(other.mark_) {}

Thread& Thread::operator=(Thread&& other) noexcept {
  std::swap(id_, other.id_);
  std::swap(is_joinable_, other.is_joinable_);
  std::swap(mark_, other.mark_);
  return *this;
}

Thread::~Thread() {
  ENSURE(!is_joinable(), "a thread of the library was neither joined nor detached");
}

void Thread::join() {
  if (is_joinable()) ::pthread_join(id_, nullptr);
  is_joinable_ = false;
}

void Thread::detach() {
  if (is_joinable()) ::pthread_detach(id_);
  is_joinable_ = false;
}

}  // namespace fairlead::base
