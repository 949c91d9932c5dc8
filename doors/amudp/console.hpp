#pragma once
// The console of a job. It accepts the ranks' greetings, assigns their numbers, distributes gathers and the end of the
// job, and detects deaths. It runs in the process that spawned the job, or in a thread of rank 0.
//
// It never waits for a single rank: messages that a rank does not read are queued, within a bound. Connections that
// have not shown the secret are replaced by newer ones.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "doors/amudp/children.hpp"
#include "doors/amudp/control.hpp"

namespace fairlead::amudp {

class Console {
 public:
  static constexpr std::size_t kStrangersMax = 64;  // connections that have not shown the secret

  struct Settings {
    sockaddr_in listen{};  // port 0: any
    std::uint32_t processes = 1;
    int depth = 0;
    std::string secret{};                               // empty: generated
    std::size_t waiting_max = Connection::kWaitingMax;  // bytes that one rank has not read
  };
  /// Returns null on failure, with the reason in `error`.
  static std::unique_ptr<Console> open(const Settings& settings, std::string& error);

  const JobAddress& address() const { return address_; }
  std::uint64_t job() const { return job_; }
  void add_child(Child child) { children_.add(std::move(child)); }
  /// Runs until the job is over. Returns its exit code.
  int run();

 private:
  using Clock = std::chrono::steady_clock;
  struct Rank {
    explicit Rank(Connection its) : connection(std::move(its)) {}

    Connection connection;
    std::int32_t rank = -1;  // -1: has not shown the secret
    int pid = 0;
    std::uint32_t gathers = 0;
    Clock::time_point since = Clock::now(), heard = Clock::now();
    bool has_part = false;
    std::vector<std::byte> part;

    bool is_gone() const { return connection.descriptor() < 0; }
  };

  explicit Console(const Settings& settings) : settings_(settings) {}
  void look();
  void accept_some();
  bool drop_oldest_stranger();
  void serve(Rank& rank);
  void greet(Rank& rank, const Received& hello);
  void refuse(const std::string& why);
  void start_all();
  void gather(Rank& rank, const Received& part);
  void tell(Rank& rank, Frame kind, std::int32_t number, const Payload& payload);
  void lose(Rank& rank, std::string_view why = {});
  /// `why` is empty if a rank requested the end.
  void end(int code, std::string_view why = {});
  void check_children();
  void check_time();
  bool is_over() const;
  /// Returns how long to wait for news at most; -1: without limit.
  int milliseconds_to_look() const;
  static void drop(Rank& rank);
  void say(const std::string& line);

  Settings settings_;
  JobAddress address_;
  std::uint64_t job_ = 0;
  base::FileDescriptor listener_;  // until the job has started
  Clock::time_point begun_, accept_again_at_;
  std::vector<std::unique_ptr<Rank>> ranks_;  // strangers in the order of arrival
  Children children_;
  std::uint32_t greeted_ = 0, refused_ = 0;
  bool is_started_ = false;
  bool is_ending_ = false;
  bool is_short_of_descriptors_ = false;  // already reported
  int exit_code_ = 0;
  Clock::time_point kill_at_, leave_at_;  // valid once the job ends
};

}  // namespace fairlead::amudp
