#include "observe/floor_peer.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <new>
#include <utility>

#include "base/affinity.hpp"
#include "base/time.hpp"

namespace fairlead::observe {
namespace {

constexpr base::Duration kPatience = std::chrono::seconds(2);

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

std::unexpected<Error> failed(std::string_view what, int number) {
  return std::unexpected(Error{Status::system, number,
                               fmt::format("cannot {} for a floor: {}: measure on an idle host with "
                                           "two processors",
                                           what, std::strerror(number))});
}

}  // namespace

Result<FloorPeer> FloorPeer::prepare() {
  FloorPeer peer;
  void* memory = ::mmap(nullptr, sizeof(FloorPage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return failed("share a page", errno);
  peer.page_ = new (memory) FloorPage;
  return peer;
}

bool FloorPeer::fork_here(int cpu) {
  const pid_t parent = ::getpid();
  process_ = ::fork();
  if (process_ != 0) return false;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) leave();
  base::pin_to_cpu(cpu);
  return true;
}

void FloorPeer::leave() {
  ::_exit(0);
}

Result<FloorPeer> FloorPeer::attend(Result<FloorPeer> peer, int cpu_near) {
  if (!peer) return peer;
  if (peer->process_ < 0) return failed("fork", errno);
  ::sched_getaffinity(0, sizeof(peer->affinity_before_), &peer->affinity_before_);
  if (!base::pin_to_cpu(cpu_near)) return failed("pin a thread", errno);
  return peer;
}

FloorPeer::FloorPeer(FloorPeer&& other) noexcept
    : page_(std::exchange(other.page_, nullptr)),
      process_(std::exchange(other.process_, -1)),
      affinity_before_(other.affinity_before_) {}

double FloorPeer::stop() {
  if (page_ == nullptr) return 0;
  page_->is_over.store(true, std::memory_order_release);
  rusage usage{};
  if (process_ > 0) {
    ::sched_setaffinity(0, sizeof(affinity_before_), &affinity_before_);
    const auto deadline = base::MonotonicClock::now() + kPatience;
    bool is_killed = false;
    while (::wait4(process_, nullptr, is_killed ? 0 : WNOHANG, &usage) == 0) {
      if (base::MonotonicClock::now() > deadline) is_killed = ::kill(process_, SIGKILL) == 0;
      ::usleep(100);
    }
  }
  ::munmap(std::exchange(page_, nullptr), sizeof(FloorPage));
  process_ = -1;
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double thread_cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace fairlead::observe
