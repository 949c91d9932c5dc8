#pragma once
// The side of a job that knows all ranks: it takes their greetings, gives them their numbers, carries gathers and the
// end, and notices who died. It runs in the process that spawned the job, or in a thread of rank 0.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "doors/amudp/control.hpp"

namespace fairlead::amudp {

/// A process that this console started, and the pipe that its output comes through.
struct Child {
  int pid = -1;
  int output = -1;  // -1: none, or at its end
  bool is_error_output = false;
  std::string line;  // not written yet
};

class Console {
 public:
  struct Settings {
    sockaddr_in listen{};  // port 0: any
    std::uint32_t processes = 1;
    int depth = 0;
    std::string secret{};  // empty: made here
  };
  /// Null: `error` tells why.
  static std::unique_ptr<Console> open(const Settings& settings, std::string& error);
  ~Console();

  const JobAddress& address() const { return address_; }
  std::uint64_t job() const { return job_; }
  void add_child(const Child& child) { children_.push_back(child); }
  /// Until the job is over; its exit code.
  int run();

 private:
  using Clock = std::chrono::steady_clock;
  struct Rank {
    std::unique_ptr<Connection> connection;
    std::int32_t rank = -1;  // -1: has not shown the secret
    int pid = 0;
    std::uint32_t gathers = 0;
    Clock::time_point since = Clock::now(), heard = Clock::now();
    bool has_part = false;
    std::vector<std::byte> part;
  };

  explicit Console(const Settings& settings) : settings_(settings) {}
  void accept_one();
  void serve(Rank& rank);
  void greet(Rank& rank, const Received& hello);
  void start_all();
  void gather(Rank& rank, const Received& part);
  void lose(Rank& rank);
  /// `why`: empty if a rank asked for it.
  void end(int code, std::string_view why = {});
  /// How long to look for news at most; -1: until there is some.
  int milliseconds_to_look() const;
  void drop(Rank& rank);
  bool route_output(Child& child);
  void reap();
  void wait_for_end_of(int pid);
  void kill_children();
  std::string how_it_ended(int pid);

  Settings settings_;
  JobAddress address_;
  std::uint64_t job_ = 0;
  int listener_ = -1;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<Child> children_;
  std::vector<std::pair<int, int>> ended_;  // pid, wait status
  std::uint32_t greeted_ = 0;
  bool is_started_ = false;
  bool is_ending_ = false;
  int exit_code_ = 0;
  Clock::time_point kill_at_, leave_at_;  // once it ends
};

}  // namespace fairlead::amudp
