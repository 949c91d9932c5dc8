// What an application of a host engine notices of another one that floods the engine. The first sends itself one
// message after the other, and measures each. The other one submits operations as fast as it can. Rounds with and
// without it alternate. Also reports how long each process waited for a processor, because the kernel's scheduler
// causes most of the delays if more threads are busy than there are processors.

#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/socket_address.hpp"
#include "base/time.hpp"
#include "engine/core.hpp"
#include "host/host_core.hpp"

namespace {

using namespace fairlead;
using namespace std::chrono_literals;

constexpr std::uint32_t kVictimPort = 1, kFloodPort = 2, kClosedPort = 3;
constexpr std::uint32_t kInFlight = 60'000;   // of the flooder; the host engine's limit is 65,536
constexpr std::uint32_t kOwnInFlight = 2000;  // of the measured process, if it is the flooder, too

[[noreturn]] void stop(std::string_view what) {
  fmt::print(stderr, "fairness_bench: {}\n", what);
  std::_Exit(1);
}

/// What the two applications share.
struct Board {
  std::atomic<std::uint64_t> floods{0};      // wanted
  std::atomic<std::uint64_t> flooded{0};     // complete
  std::atomic<std::uint64_t> operations{0};  // of floods, complete
};

struct Settings {
  std::string program, wait = "adaptive", flood_wait = "adaptive";
  std::uint64_t bytes = 64, flood_bytes = 64, operations = 1'000'000;
  std::uint32_t rounds = 5, in_flight = 1, milliseconds = 1000;
  int processor = -1, daemon_processor = -1;
  bool is_delivered = false, is_realtime = false, is_same_thread = false;
};

void settle(pid_t process, int processor, bool is_realtime) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor < 0 ? 0 : processor, &set);
  if (processor >= 0 && ::sched_setaffinity(process, sizeof set, &set) != 0) stop("no such processor");
  const sched_param priority{.sched_priority = 10};
  if (is_realtime && ::sched_setscheduler(process, SCHED_FIFO, &priority) != 0) stop("--realtime needs CAP_SYS_NICE");
}

/// Time that all threads of a process have run and have waited for a processor, in milliseconds.
struct Scheduled {
  double ran = 0, waited = 0;
  static Scheduled of(pid_t process) {
    Scheduled sum;
    for (const auto& thread : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process))) {
      double ran = 0, waited = 0;
      std::ifstream(thread.path() / "schedstat") >> ran >> waited;
      sum.ran += ran / 1e6;
      sum.waited += waited / 1e6;
    }
    return sum;
  }
  Scheduled operator-(const Scheduled& other) const { return {ran - other.ran, waited - other.waited}; }
};

class Port {
 public:
  Port(const std::string& socket, const std::string& wait, std::uint32_t number, std::uint64_t bytes) : bytes_(bytes) {
    auto options = engine::EngineOptions::from_environment();
    if (!options || !options->set("wait", wait)) stop("an option is invalid");
    auto core = host::HostCore::attach(socket, *base::SocketAddress::from_ip("127.0.0.1", 0), *options);
    if (!core) stop(core.error().message);
    core_ = *core;
    port_ = core_->open_port(number).value();
    const auto allocate = core_->allocate_shared();
    memory_ = allocate ? allocate(2 * bytes) : nullptr;
    if (!memory_) stop("no shared memory");
    piece_ = {memory_.get(), bytes};
    target_ = {memory_.get() + bytes, bytes};
  }
  bool receive() {
    if (core_->reserve_events(port_, 1) != Status::ok) stop("no room for events");
    engine::OperationHandle operation;
    const engine::Receive receive{.memory = {&target_, 1}, .size_min = bytes_, .messages_max = 1, .cookie = 1};
    return core_->post_receive(port_, receive, operation) == Status::ok;
  }
  bool send(std::uint32_t number) {
    if (core_->reserve_events(port_, 1) != Status::ok) return false;
    engine::OperationHandle operation;
    const engine::Send send{.to = {core_->address(), number}, .part = {{&piece_, 1}, bytes_, 0}};
    if (core_->send(port_, send, operation) == Status::ok) return true;
    core_->release_events(port_, 1);
    return false;
  }
  void wait() { core_->wait(port_, base::MonotonicClock::now() + 100ms); }
  /// Returns how many receives and how many other operations have ended.
  std::pair<std::uint32_t, std::uint32_t> take() {
    std::pair<std::uint32_t, std::uint32_t> ended;
    for (engine::Completion completion; core_->next_event(port_, completion); core_->release_events(port_, 1))
      ++(completion.cookie == 1 ? ended.first : ended.second);
    return ended;
  }

 private:
  const std::uint64_t bytes_;
  std::shared_ptr<engine::Core> core_;
  engine::PortHandle port_;
  std::shared_ptr<std::byte> memory_;
  iovec piece_{}, target_{};
};

[[noreturn]] void flood(const std::string& socket, const Settings& settings, Board& board) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  Port port(socket, settings.flood_wait, kFloodPort, settings.flood_bytes);
  for (;;) {
    while (board.floods.load() == board.flooded.load()) std::this_thread::sleep_for(1ms);
    std::uint64_t sent = 0, ended = 0;
    const std::uint32_t to = settings.is_delivered ? kFloodPort : kClosedPort;
    while (ended < settings.operations) {
      while (sent < settings.operations && sent - ended < kInFlight && port.send(to)) ++sent;
      port.wait();
      const std::uint64_t now = port.take().second;
      ended += now;
      board.operations += now;
    }
    ++board.flooded;
  }
}

struct Figures {
  double p50 = 0, p99 = 0, most = 0, megabytes = 0;  // microseconds, MB/s
  Scheduled own, daemon, other;
  double flooded = 0;  // operations of the flooder per second
};

class Victim {
 public:
  Victim(const std::string& socket, const Settings& settings, Board& board, pid_t daemon, pid_t flooder)
      : socket_(socket),
        settings_(settings),
        board_(board),
        daemon_(daemon),
        flooder_(flooder),
        port_(socket, settings.wait, kVictimPort, settings.bytes) {}

  Figures run(bool is_flooded) {
    if (settings_.is_same_thread) {
      is_own_flood_ = is_flooded;
    } else if (is_flooded) {
      ++board_.floods;
      const std::uint64_t before = board_.operations;
      while (board_.operations == before && board_.flooded != board_.floods) std::this_thread::yield();
    }
    const Scheduled own = Scheduled::of(::getpid()), daemon = Scheduled::of(daemon_), other = Scheduled::of(flooder_);
    const auto begin = base::MonotonicClock::now();
    const auto until = begin + std::chrono::milliseconds(settings_.milliseconds);
    const std::uint64_t operations = board_.operations;
    times_.clear();
    std::uint64_t count = 0;
    base::Instant now = begin;
    const bool is_other_flood = is_flooded && !is_own_flood_;
    const auto goes_on = [&] { return is_other_flood ? board_.flooded != board_.floods : now < until; };
    for (; goes_on(); ++count) {
      if (is_own_flood_) {
        top_up();
        now = base::MonotonicClock::now();
      }
      exchange();
      const auto after = base::MonotonicClock::now();
      times_.push_back(std::chrono::duration<double, std::micro>(after - now).count());
      now = after;
    }
    const double seconds = std::chrono::duration<double>(now - begin).count();
    while (own_flood_in_flight_ > 0) drain();
    Figures figures;
    figures.flooded = static_cast<double>(board_.operations - operations) / seconds;
    figures.own = Scheduled::of(::getpid()) - own;
    figures.daemon = Scheduled::of(daemon_) - daemon;
    figures.other = Scheduled::of(flooder_) - other;
    figures.megabytes = static_cast<double>(count * settings_.in_flight * settings_.bytes) / seconds / 1e6;
    std::ranges::sort(times_);
    if (times_.empty()) stop("the flood was too short: more --operations");
    figures.p50 = times_[times_.size() / 2];
    figures.p99 = times_[times_.size() * 99 / 100];
    figures.most = times_.back();
    return figures;
  }

 private:
  /// Submits operations of another application of this process, so that the engine always has some.
  void top_up() {
    if (!own_flood_)
      own_flood_ = std::make_unique<Port>(socket_, settings_.flood_wait, kFloodPort + 2, settings_.flood_bytes);
    drain();
    while (own_flood_in_flight_ < kOwnInFlight &&
           own_flood_->send(settings_.is_delivered ? kFloodPort + 2 : kClosedPort))
      ++own_flood_in_flight_;
  }
  void drain() {
    const std::uint64_t ended = own_flood_->take().second;
    own_flood_in_flight_ -= ended;
    board_.operations += ended;
  }
  void exchange() {
    for (std::uint32_t i = 0; i < settings_.in_flight; ++i)
      if (!port_.receive() || !port_.send(kVictimPort)) stop("an operation was refused");
    for (std::uint32_t left = 2 * settings_.in_flight; left > 0;) {
      port_.wait();
      const auto [received, sent] = port_.take();
      left -= received + sent;
    }
  }

  const std::string socket_;
  const Settings& settings_;
  Board& board_;
  const pid_t daemon_, flooder_;
  Port port_;
  std::unique_ptr<Port> own_flood_;
  std::uint64_t own_flood_in_flight_ = 0;
  bool is_own_flood_ = false;
  std::vector<double> times_;
};

double median(std::vector<Figures>& all, double Figures::* member) {
  std::ranges::sort(all, {}, member);
  return all[all.size() / 2].*member;
}

void tell(std::string_view name, const Figures& one) {
  fmt::print(
      "{:8} p50 {:8.1f} us, p99 {:8.1f} us, most {:8.0f} us, {:8.1f} MB/s, flood {:5.2f} M/s; ran and waited, ms: "
      "victim {:.0f} {:.0f}, daemon {:.0f} {:.0f}, flooder {:.0f} {:.0f}\n",
      name, one.p50, one.p99, one.most, one.megabytes, one.flooded / 1e6, one.own.ran, one.own.waited, one.daemon.ran,
      one.daemon.waited, one.other.ran, one.other.waited);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("what an application of a host engine notices of one that floods it");
  Settings settings;
  settings.program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "fairleadd";
  app.add_option("--bytes", settings.bytes, "of a message of the measured application")->capture_default_str();
  app.add_option("--in-flight", settings.in_flight, "messages that it sends at a time")->capture_default_str();
  app.add_option("--flood-bytes", settings.flood_bytes, "of a message of the flooder")->capture_default_str();
  app.add_option("--operations", settings.operations, "of a flood")->capture_default_str();
  app.add_flag("--delivered", settings.is_delivered,
               "the flood goes to an open port without buffers, instead of a closed one");
  app.add_flag("--same-thread", settings.is_same_thread,
               "the measured process is also the flooder, by a second attachment, so that only two threads are busy");
  app.add_option("--rounds", settings.rounds)->capture_default_str();
  app.add_option("--milliseconds", settings.milliseconds, "of a round without the flooder")->capture_default_str();
  app.add_option("--wait", settings.wait, "how the measured application waits")->capture_default_str();
  app.add_option("--flood-wait", settings.flood_wait, "how the flooder waits")->capture_default_str();
  app.add_option("--processor", settings.processor, "of the measured application; -1: any")->capture_default_str();
  app.add_option("--daemon-processor", settings.daemon_processor)->capture_default_str();
  app.add_flag("--realtime", settings.is_realtime,
               "the daemon and the measured application have priority over all other programs");
  app.add_option("--daemon", settings.program)->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  char folder[] = "/tmp/fairness-XXXXXX";
  const std::string socket = std::string(::mkdtemp(folder)) + "/host";
  auto* const board =
      static_cast<Board*>(::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (board == MAP_FAILED) stop("no memory");
  const pid_t daemon = ::fork();
  if (daemon < 0) stop("no further process");
  if (daemon == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    settle(0, settings.daemon_processor, settings.is_realtime);
    ::execl(settings.program.c_str(), settings.program.c_str(), "--socket", socket.c_str(), nullptr);
    stop("cannot start " + settings.program);
  }
  for (int i = 0; i < 1000 && !std::filesystem::exists(socket); ++i) std::this_thread::sleep_for(10ms);
  const pid_t flooder = ::fork();
  if (flooder < 0) stop("no further process");
  if (flooder == 0) flood(socket, settings, *board);
  settle(0, settings.processor, settings.is_realtime);

  std::vector<Figures> alone, flooded;
  {
    Victim victim(socket, settings, *board, daemon, flooder);
    for (std::uint32_t i = 0; i < settings.rounds; ++i) {
      alone.push_back(victim.run(false));
      tell("alone", alone.back());
      flooded.push_back(victim.run(true));
      tell("flooded", flooded.back());
    }
  }
  for (const auto& [name, member] :
       {std::pair{"p50", &Figures::p50}, std::pair{"p99", &Figures::p99}, std::pair{"MB/s", &Figures::megabytes}}) {
    const double before = median(alone, member), after = median(flooded, member);
    fmt::print("{:5} alone {:.1f}, flooded {:.1f}: {:.2f} times\n", name, before, after, after / before);
  }
  for (const pid_t process : {flooder, daemon}) {
    ::kill(process, SIGTERM);
    ::waitpid(process, nullptr, 0);
  }
  std::filesystem::remove_all(folder);
}
