#include "daemon/successor.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/environment.hpp"

namespace fairlead::daemon {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;

Error failed(std::string_view what) {
  const int number = errno;
  return {Status::system, number, fmt::format("{}: {}", what, std::strerror(number))};
}

/// Writes the state to a memfd and seals it against every change.
Result<base::FileDescriptor> write_state(std::span<const std::byte> state) {
  base::FileDescriptor file(::memfd_create("fairleadd-state", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.is_open()) return std::unexpected(failed("no memory for the state"));
  for (std::size_t done = 0; done < state.size();) {
    const ssize_t written = ::write(file.get(), state.data() + done, state.size() - done);
    if (written <= 0) return std::unexpected(failed("no memory for the state"));
    done += static_cast<std::size_t>(written);
  }
  if (::fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) return std::unexpected(failed("cannot seal the state"));
  return file;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

/// Describes the end of a program that gave no reason.
std::string end_of(int status) {
  if (WIFSIGNALED(status)) return fmt::format("it was killed by signal {} without a message", WTERMSIG(status));
  return fmt::format("it exited with status {} without a message; is it fairleadd?", WEXITSTATUS(status));
}

bool keep_open(std::span<const int> descriptors, bool is_kept) {
  return std::ranges::all_of(descriptors,
                             [&](int one) { return ::fcntl(one, F_SETFD, is_kept ? 0 : FD_CLOEXEC) == 0; });
}

}  // namespace

Successor::Successor(int argc, char** argv) {
  ::sched_getaffinity(0, sizeof processors_, &processors_);
  bool is_successor = false;
  const std::span given(argv, static_cast<std::size_t>(argc));
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::string_view one = given[i];
    if (one == kResume || one == kRehearse) {
      ++i;  // skips its value
      is_successor = true;
    } else {
      arguments_.emplace_back(one);
    }
  }
  if (arguments_.empty()) arguments_.emplace_back();
  path_ = arguments_[0] = Program::own_path(arguments_[0], is_successor);
  // The kernel names a process by what was executed: the number of a descriptor.
  if (is_successor) ::prctl(PR_SET_NAME, std::filesystem::path(path_).filename().c_str());
}

std::vector<std::string> Successor::arguments_with(const char* option, int descriptor) const {
  std::vector<std::string> arguments = arguments_;
  arguments.emplace_back(option);
  arguments.push_back(fmt::format("{}", descriptor));
  return arguments;
}

Result<Rehearsal> Successor::rehearse(const Program& program, std::span<const std::byte> state) const {
  const auto file = write_state(state);
  if (!file) return std::unexpected(file.error());
  ::signal(SIGCHLD, SIG_DFL);  // if it is ignored, as our parent may have left it, the kernel keeps no exit codes
  int ends[2] = {};
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return std::unexpected(failed("no pipe"));
  base::FileDescriptor words(ends[0]), said(ends[1]);
  std::vector<std::string> arguments = arguments_with(kRehearse, file->get());
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, said.get(), STDERR_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, file->get(), file->get());  // stays open
  pid_t child = 0;
  const std::vector<std::string_view> whole = base::whole_environment();
  std::vector<std::string> variables(whole.begin(), whole.end());
  const int error = ::posix_spawn(&child, program.executable().c_str(), &actions, nullptr, pointers(arguments).data(),
                                  pointers(variables).data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    errno = error;
    return std::unexpected(failed(fmt::format("cannot start {}", program.path())));
  }
  base::FileDescriptor process(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  return Rehearsal(std::move(process), std::move(words), child);
}

Error Successor::take_over(const Program& program, std::span<const std::byte> state,
                           std::span<const int> descriptors) const {
  const auto file = write_state(state);
  if (!file) return file.error();
  std::vector<int> kept(descriptors.begin(), descriptors.end());
  kept.push_back(file->get());
  std::vector<std::string> arguments = arguments_with(kResume, file->get());
  const std::vector<char*> words = pointers(arguments);
  const std::string executable = program.executable();
  if (!program.is_unchanged()) {
    return {Status::again, 0,
            fmt::format("{} was changed while it was tried: ask again when it is complete", program.path())};
  }
  cpu_set_t bound{};  // the new program may have other settings
  ::sched_getaffinity(0, sizeof bound, &bound);
  ::sched_setaffinity(0, sizeof processors_, &processors_);
  if (keep_open(kept, true)) ::execv(executable.c_str(), words.data());
  Error why = failed(fmt::format("cannot start {}", program.path()));
  ::sched_setaffinity(0, sizeof bound, &bound);
  keep_open(kept, false);
  return why;
}

Rehearsal::Rehearsal(Rehearsal&& other) noexcept
    : process_(std::move(other.process_)),
      words_(std::move(other.words_)),
      id_(std::exchange(other.id_, 0)),
      until_(other.until_) {}

Rehearsal& Rehearsal::operator=(Rehearsal&& other) noexcept {
  std::swap(process_, other.process_);
  std::swap(words_, other.words_);
  std::swap(id_, other.id_);
  std::swap(until_, other.until_);
  return *this;
}

Rehearsal::~Rehearsal() {
  if (id_ == 0) return;
  ::kill(id_, SIGKILL);
  ::waitpid(id_, nullptr, 0);
}

bool Rehearsal::is_over() const {
  pollfd ended{process_.get(), POLLIN, 0};
  return ::poll(&ended, 1, 0) != 0 || base::MonotonicClock::now() >= until_;
}

Result<> Rehearsal::result() {
  int status = 0;
  const bool has_ended = ::waitpid(id_, &status, WNOHANG) == id_;
  if (has_ended) id_ = 0;
  if (has_ended && WIFEXITED(status) && WEXITSTATUS(status) == kCouldGoOn) return {};
  std::string said(4096, '\0');
  const ssize_t length = ::read(words_.get(), said.data(), said.size());
  said.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  while (said.ends_with('\n')) said.pop_back();
  if (said.empty()) said = has_ended ? end_of(status) : "it did not finish within 3 s";
  return std::unexpected(Error{Status::refused, 0, fmt::format("the new program cannot continue: {}", said)});
}

Result<base::SavedBytes> read_state(base::FileDescriptor file) {
  struct stat facts{};
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals || ::fstat(file.get(), &facts) != 0)
    return std::unexpected(Error{Status::invalid, 0, "that is no state which the program before this one has left"});
  base::SavedBytes state(static_cast<std::size_t>(facts.st_size));
  for (std::size_t done = 0; done < state.size();) {
    const ssize_t length = ::pread(file.get(), state.data() + done, state.size() - done, static_cast<off_t>(done));
    if (length <= 0) return std::unexpected(failed("cannot read the state that was left"));
    done += static_cast<std::size_t>(length);
  }
  return state;
}

}  // namespace fairlead::daemon
