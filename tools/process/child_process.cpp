#include "tools/process/child_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "base/affinity.hpp"
#include "tools/process/executable.hpp"

namespace fairlead::tools {
namespace {

constexpr int kExitNotStarted = 127;  // as in shells
constexpr int kUnknown = 0xff00;      // as a status: exit code 255
constexpr std::size_t kOutputMax = 16 << 20;
constexpr std::size_t kSaidMax = 300;  // bytes, in an error text
constexpr Duration kLook = std::chrono::milliseconds{1};

Error start_failure(const std::string& program, int number) {
  return {Status::system, number, fmt::format("cannot start {}: {}", program, std::strerror(number))};
}

/// Returns a file in memory; not as a standard stream, even if this process has closed its own.
base::FileDescriptor memory_file(const char* name, std::string_view content = {}) {
  base::FileDescriptor file(::memfd_create(name, MFD_CLOEXEC));
  if (file.is_open() && file.get() <= STDERR_FILENO)
    file = base::FileDescriptor(::fcntl(file.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  const bool is_whole =
      ::pwrite(file.get(), content.data(), content.size(), 0) == static_cast<ssize_t>(content.size()) &&
      ::fcntl(file.get(), F_SETFL, O_APPEND) == 0;
  return is_whole ? std::move(file) : base::FileDescriptor();
}

std::string content_of(const base::FileDescriptor& file) {
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return {};
  std::string text(std::min(kOutputMax, static_cast<std::size_t>(status.st_size)), '\0');
  const ssize_t taken = ::pread(file.get(), text.data(), text.size(), 0);
  text.resize(taken > 0 ? static_cast<std::size_t>(taken) : 0);
  return text;
}

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  text = text.substr(text.rfind('\n') + 1);
  return text.size() > kSaidMax ? text.substr(0, kSaidMax) : text;
}

/// While SIGCHLD is ignored, as some parents leave it, the kernel discards exit codes.
void keep_exit_codes() {
  struct sigaction present{};
  if (::sigaction(SIGCHLD, nullptr, &present) == 0 && present.sa_handler == SIG_IGN) ::signal(SIGCHLD, SIG_DFL);
}

/// Ends a child that could not become the program. Like all between fork() and here, async-signal-safe: other threads
/// may have held locks at the fork.
[[noreturn]] void give_up(const char* file, int number) {
  for (const char* part : {"cannot start ", file, ": ", ::strerrordesc_np(number), "\n"})
    if (part != nullptr) (void)!::write(STDERR_FILENO, part, std::strlen(part));
  ::_exit(kExitNotStarted);
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& words, const ChildOptions& options) {
  const auto file = find_executable(words.front(), kSystemFolders);
  if (!file) {
    obstacle_ = Error{Status::system, ENOENT, fmt::format("there is no program {} here", words.front())};
    exit_code_ = kExitNotStarted;
    return;
  }
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);

  base::FileDescriptor input;
  if (options.is_captured) {
    input = memory_file("input", options.input);
    output_ = memory_file("output");
    error_output_ = memory_file("error output");
  }
  keep_exit_codes();
  const bool is_ready = !options.is_captured || (input.is_open() && output_.is_open() && error_output_.is_open());
  const pid_t parent = ::getpid();
  if (is_ready) pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (options.is_captured) {
      ::dup2(input.get(), STDIN_FILENO);
      ::dup2(output_.get(), STDOUT_FILENO);
      ::dup2(error_output_.get(), STDERR_FILENO);
    }
    if (options.kept >= 0) ::fcntl(options.kept, F_SETFD, 0);
    if (options.cpu >= 0) (void)base::pin_to_cpu(options.cpu);
    if (::getppid() == parent) ::execv(file->c_str(), arguments.data());
    give_up(file->c_str(), errno);
  }
  if (pid_ > 0) return;
  obstacle_ = start_failure(*file, errno);
  exit_code_ = kExitNotStarted;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : obstacle_(std::move(other.obstacle_)),
      pid_(std::exchange(other.pid_, -1)),
      exit_code_(std::exchange(other.exit_code_, kExitNotStarted)),
      output_(std::move(other.output_)),
      error_output_(std::move(other.error_output_)) {}

ChildProcess::~ChildProcess() {
  kill();
}

void ChildProcess::send_signal(int number) const {
  if (exit_code_ < 0) ::kill(pid_, number);
}

void ChildProcess::kill() {
  if (has_ended()) return;
  send_signal(SIGKILL);
  while (!has_ended()) std::this_thread::sleep_for(kLook);
}

bool ChildProcess::has_ended() {
  if (exit_code_ >= 0) return true;
  int status = 0;
  const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
  if (ended == 0) return false;
  if (ended < 0) status = kUnknown;  // it is another process's child, after a fork()
  exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return true;
}

int ChildProcess::wait(Duration at_most) {
  for (const Instant deadline = Instant::clock::now() + at_most; !has_ended() && Instant::clock::now() < deadline;)
    std::this_thread::sleep_for(kLook);
  return exit_code_;
}

bool ChildProcess::wait_for_text(const std::string& text, Duration at_most) {
  for (const Instant deadline = Instant::clock::now() + at_most;; std::this_thread::sleep_for(kLook)) {
    const bool is_over = has_ended() || Instant::clock::now() >= deadline;
    if (output().contains(text) || error_output().contains(text)) return true;
    if (is_over) return false;
  }
}

std::string ChildProcess::output() const {
  return content_of(output_);
}

std::string ChildProcess::error_output() const {
  return obstacle_ ? obstacle_->message + "\n" : content_of(error_output_);
}

Result<std::string> run_program(const std::vector<std::string>& words, std::string_view input, Duration at_most) {
  ChildProcess program(words, {.input = input});
  if (program.obstacle() != nullptr) return std::unexpected(*program.obstacle());
  const int exit_code = program.wait(at_most);
  if (exit_code < 0) program.kill();
  if (exit_code == 0) return program.output();
  const std::string said = last_line(program.error_output().empty() ? program.output() : program.error_output());
  return std::unexpected(
      Error{Status::system, 0,
            fmt::format("{} {}: {}", fmt::join(words, " "),
                        exit_code < 0 ? "did not end in time" : fmt::format("ended with code {}", exit_code),
                        said.empty() ? "it said nothing" : said)});
}

}  // namespace fairlead::tools
