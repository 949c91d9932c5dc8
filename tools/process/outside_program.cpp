#include "tools/process/outside_program.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "tools/base/processor.hpp"
#include "tools/process/executable.hpp"

namespace fairlead::tools {
namespace {

constexpr std::size_t kOutputMax = 1 << 20;
constexpr std::size_t kSaidMax = 300;  // bytes, in an error text
constexpr Duration kLook = std::chrono::milliseconds{1};

std::unexpected<Error> failure(std::string message, int number = 0) {
  return std::unexpected(Error{Status::system, number, std::move(message)});
}

std::string content_of(int descriptor) {
  const off_t length = descriptor < 0 ? 0 : lseek(descriptor, 0, SEEK_END);
  std::string text(std::min(kOutputMax, static_cast<std::size_t>(std::max<off_t>(length, 0))), '\0');
  const ssize_t taken = pread(descriptor, text.data(), text.size(), 0);
  text.resize(taken > 0 ? static_cast<std::size_t>(taken) : 0);
  return text;
}

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  text = text.substr(text.rfind('\n') + 1);
  return text.size() > kSaidMax ? text.substr(0, kSaidMax) : text;
}

}  // namespace

std::string find_program(std::string_view name) {
  return find_executable(std::string(name), "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin").value_or(std::string());
}

Result<OutsideProgram> OutsideProgram::start(const std::vector<std::string>& words, std::string_view input, int cpu) {
  std::string file = find_program(words.front());
  if (file.empty()) return failure(fmt::format("there is no program {} here", words.front()), ENOENT);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);

  OutsideProgram program;
  const int standard_input = memfd_create("input", MFD_CLOEXEC);
  program.output_ = memfd_create("output", MFD_CLOEXEC);
  program.error_output_ = memfd_create("error output", MFD_CLOEXEC);
  bool is_ready = standard_input >= 0 && program.output_ >= 0 && program.error_output_ >= 0 &&
                  pwrite(standard_input, input.data(), input.size(), 0) == static_cast<ssize_t>(input.size());
  const pid_t parent = getpid();
  if (is_ready) program.process_ = fork();
  if (program.process_ == 0) {  // async-signal-safe calls only: other threads may have held locks at the fork
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(standard_input, 0);
    dup2(program.output_, 1);
    dup2(program.error_output_, 2);
    if (cpu >= 0) (void)pin_thread(cpu);
    if (getppid() == parent) execv(file.c_str(), arguments.data());
    _exit(127);
  }
  const int number = errno;
  if (standard_input >= 0) close(standard_input);
  if (program.process_ < 0) return failure(fmt::format("cannot start {}: {}", file, std::strerror(number)), number);
  return program;
}

OutsideProgram::OutsideProgram(OutsideProgram&& other) noexcept
    : process_(std::exchange(other.process_, -1)),
      exit_code_(other.exit_code_),
      output_(std::exchange(other.output_, -1)),
      error_output_(std::exchange(other.error_output_, -1)) {}

OutsideProgram::~OutsideProgram() {
  kill();
  if (output_ >= 0) close(output_);
  if (error_output_ >= 0) close(error_output_);
}

bool OutsideProgram::wait(Duration at_most) {
  for (const Instant deadline = Instant::clock::now() + at_most; process_ > 0;) {
    int status = 0;
    const pid_t ended = waitpid(process_, &status, WNOHANG);
    if (ended == process_) {
      exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      process_ = -1;
    } else if (Instant::clock::now() >= deadline) {
      return false;
    } else {
      std::this_thread::sleep_for(kLook);
    }
  }
  return true;
}

void OutsideProgram::kill() {
  if (process_ <= 0) return;
  ::kill(process_, SIGKILL);
  wait(std::chrono::hours{1});
}

std::string OutsideProgram::output() const {
  return content_of(output_);
}

std::string OutsideProgram::error_output() const {
  return content_of(error_output_);
}

Result<std::string> run_program(const std::vector<std::string>& words, std::string_view input, Duration at_most) {
  auto program = OutsideProgram::start(words, input);
  if (!program) return std::unexpected(std::move(program.error()));
  const bool is_over = program->wait(at_most);
  if (!is_over) program->kill();
  if (program->exit_code() == 0) return program->output();
  const std::string said = last_line(program->error_output().empty() ? program->output() : program->error_output());
  return failure(fmt::format("{} {}: {}", fmt::join(words, " "),
                             is_over ? fmt::format("ended with code {}", program->exit_code()) : "did not end in time",
                             said.empty() ? "it said nothing" : said));
}

}  // namespace fairlead::tools
