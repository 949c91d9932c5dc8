#pragma once
// The second process of a floor: forked, pinned, stopped and waited for. It may only make system calls and use memory
// that existed before the fork, since other threads may have held locks at that moment.

#include <fairlead/error.hpp>

#include <sched.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace fairlead::observe {

/// The page shared by both processes. Each word has one writer.
struct FloorPage {
  alignas(128) std::atomic<bool> is_over{false};              // written by the near process
  alignas(128) std::atomic<std::uint64_t> bytes_received{0};  // written by the far process
};

class FloorPeer {
 public:
  /// Pins the caller to `cpu_near`, and runs `body(page)` in another process on `cpu_far`. `body` has to return soon
  /// after is_over becomes true.
  template <typename Body>
  static Result<FloorPeer> start(int cpu_near, int cpu_far, Body body) {
    auto peer = prepare();
    if (peer && peer->fork_here(cpu_far)) {
      body(*peer->page_);
      leave();
    }
    return attend(std::move(peer), cpu_near);
  }

  FloorPeer(FloorPeer&& other) noexcept;
  FloorPeer& operator=(FloorPeer&&) = delete;
  ~FloorPeer() { stop(); }

  FloorPage& page() { return *page_; }

  /// Ends the other process. Returns its CPU time in seconds, or 0 if it had to be killed.
  double stop();

 private:
  FloorPeer() = default;
  static Result<FloorPeer> prepare();
  bool fork_here(int cpu);  // returns true in the new process
  [[noreturn]] static void leave();
  static Result<FloorPeer> attend(Result<FloorPeer> peer, int cpu_near);

  FloorPage* page_ = nullptr;
  pid_t process_ = -1;
  cpu_set_t affinity_before_{};
};

/// Returns the CPU time of the calling thread, in seconds.
double thread_cpu_seconds();

}  // namespace fairlead::observe
