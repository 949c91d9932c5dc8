#pragma once
// A worker process of a job: its connection to the console, served by a thread, and collective operations.

#include <amudp_spmd.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/process_mark.hpp"
#include "doors/amudp/control.hpp"

namespace fairlead::amudp {

class Worker {
 public:
  /// Greets the console and waits for the start of the job. Returns null on failure, with the reason in `error`.
  static std::unique_ptr<Worker> join(const JobAddress& job, std::int32_t wanted_rank, std::string& error);

  /// Returns whether this process is a child that the rank has forked.
  bool is_inherited() const { return mark_.is_inherited(); }
  int rank() const { return rank_; }
  int processes() const { return static_cast<int>(info_.processes); }
  std::uint64_t job() const { return info_.job; }
  int depth() const { return info_.depth; }
  std::string own_ip() const { return ip_text(connection_.own_address()); }
  const char* environment(std::string_view name) const;

  /// Returns all ranks' parts in rank order. Calls `meanwhile` repeatedly until they have come; its argument asks it to
  /// return as soon as they have.
  template <typename Meanwhile>
  std::vector<std::byte> gather(std::span<const std::byte> part, Meanwhile&& meanwhile) {
    const std::stop_token come = begin_gather(part);
    while (!come.stop_requested()) meanwhile(come);
    const std::scoped_lock lock(mutex_);
    return std::move(gathered_);
  }
  /// Ends the job; does not return.
  [[noreturn]] void exit(int code);
  /// Call when a rank is gone. If the console soon announces the end of the job, waits for this process to end. Returns
  /// true if that takes too long, and false if there is no announcement.
  bool waits_for_its_end();

  amudp_exitcallback_t exit_callback = nullptr;
  /// Set if the console runs inside this process; it must inform the other ranks before the process ends.
  std::shared_ptr<std::atomic<bool>> inner_console_is_done;

 private:
  Worker(Connection connection) : connection_(std::move(connection)) {}
  bool start(const JobAddress& job, std::int32_t wanted_rank, std::string& error);
  std::stop_token begin_gather(std::span<const std::byte> part);
  void serve();
  [[noreturn]] void end(int code);

  const base::ProcessMark mark_;
  Connection connection_;
  std::int32_t rank_ = 0;
  StartInfo info_;
  std::vector<char> environment_;  // consecutive 0-terminated strings
  std::mutex mutex_;               // guards gathered_ and come_
  std::mutex sending_;             // serialises sending on the connection
  std::vector<std::byte> gathered_;
  std::stop_source come_{std::nostopstate};  // of the present gather
  std::atomic<bool> is_leaving_{false};      // the application's own thread is ending the process
  std::atomic<int> gathers_{0};
  std::condition_variable told_;
  std::optional<int> told_code_;  // the exit code, once the console has announced the end
};

/// Returns the worker of this process; null outside a job.
Worker* worker();

/// The description of this process by a PMIx launcher (mpirun, srun). exchange_by_pmix() sends a text of rank 0 to all
/// ranks.
struct Launched {
  int rank = 0;
  int processes = 1;
};
std::optional<Launched> launched_by_pmix(std::string& error);
bool is_started_by_pmix();
std::optional<std::string> exchange_by_pmix(const std::string& text_of_first, std::string& error);
/// Tells the launcher that this process ends normally. Otherwise the launcher ends the job as failed.
void leave_pmix();

}  // namespace fairlead::amudp
