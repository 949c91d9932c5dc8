#include "tools/perf/far.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>

#include "tools/base/processor.hpp"
#include "tools/perf/far_roles.hpp"

extern char** environ;  // of the C library

namespace fairlead::tools {
namespace {

using AddressText = std::array<char, 96>;

std::unexpected<Error> gone() {
  return std::unexpected(
      Error{Status::system, 0, "the second process of the measurement ended at once: see its message above"});
}

}  // namespace

Result<> serve_perf(PerfControl control, std::string_view address, int cpu) {
  (void)pin_thread(cpu);
  auto domain = net::Domain::open();
  if (!domain) return std::unexpected(std::move(domain.error()));
  PerfNode node(*domain);
  if (auto started = node.start(address); !started) return started;
  AddressText own{};
  node.address().copy(own.data(), own.size() - 1);
  control.send(own);
  while (const auto command = control.receive<PerfCommand>()) {
    auto outcome = play_perf_role(node, *command, control);
    if (!outcome) return std::unexpected(std::move(outcome.error()));
    if (!control.receive<char>() || !control.send(*outcome)) break;
  }
  return {};
}

Result<std::unique_ptr<PerfFar>> PerfFar::start(std::string_view address, int cpu, bool is_process) {
  auto ends = PerfControl::make_pair();
  if (!ends) return std::unexpected(std::move(ends.error()));
  std::unique_ptr<PerfFar> far(new PerfFar(std::move(ends->first)));
  if (is_process) {
    // The far end of the control keeps its descriptor number in the new program.
    const int descriptor = ends->second.descriptor();
    fcntl(descriptor, F_SETFD, 0);
    std::string program = "/proc/self/exe", command = "perf-far", own(address);
    std::string control = std::to_string(descriptor), processor = std::to_string(cpu);
    std::array<char*, 6> words{program.data(), command.data(), control.data(), own.data(), processor.data(), nullptr};
    if (const int number = posix_spawn(&far->process_, program.c_str(), nullptr, nullptr, words.data(), environ);
        number != 0) {
      far->process_ = -1;
      return std::unexpected(
          Error{Status::system, number, fmt::format("cannot start a second process: {}", std::strerror(number))});
    }
  } else {
    far->thread_ = std::thread([control = std::move(ends->second), own = std::string(address), cpu]() mutable {
      if (auto served = serve_perf(std::move(control), own, cpu); !served)
        fmt::print(stderr, "fairlead: {}\n", served.error().message);
    });
  }
  {
    const PerfControl far_end = std::move(ends->second);  // closed here, so that the death of the far side is noticed
  }
  const auto told = far->control_->receive<AddressText>();
  if (!told) return gone();
  far->address_ = told->data();
  return far;
}

PerfFar::~PerfFar() {
  control_.reset();  // the far side reads end-of-file and ends
  if (thread_.joinable()) thread_.join();
  if (process_ > 0) {
    int status = 0;
    while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
  }
}

bool PerfFar::begin(const PerfCommand& command) {
  return control_->send(command) && control_->receive<char>().has_value();
}

std::optional<PerfOutcome> PerfFar::end() {
  if (!control_->send('s')) return std::nullopt;
  return control_->receive<PerfOutcome>();
}

double PerfFar::cpu_seconds() const {
  if (process_ <= 0) return 0;
  clockid_t clock;
  timespec time{};
  if (clock_getcpuclockid(process_, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace fairlead::tools
