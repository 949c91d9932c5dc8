#include "doors/amudp/children.hpp"

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "base/file_signals.hpp"

namespace fairlead::amudp {
namespace {

constexpr std::size_t kLineMax = 16384;  // bytes; longer lines are written in pieces

}  // namespace

void Outlet::put(std::string_view text) {
  if (is_closed_) return;
  waiting_ += text;
  if (waiting_.empty()) return;
  errno = 0;
  waiting_.erase(0, base::write_now(to_, waiting_));
  if (waiting_.empty() || errno == 0 || errno == EAGAIN) return;
  is_closed_ = true;
  has_lost_reader_ = errno == EPIPE;
  waiting_.clear();
}

void Children::watch(std::vector<pollfd>& looks) const {
  for (const Outlet& outlet : outlets_) {
    if (outlet.is_waiting()) looks.push_back({outlet.descriptor(), POLLOUT, 0});
  }
  for (const Child& child : all_) {
    if (!child.has_ended && child.process.is_open()) looks.push_back({child.process.get(), POLLIN, 0});
    for (std::size_t i = 0; i < child.outputs.size(); ++i) {
      const bool is_wanted = child.outputs[i].from.is_open() && !outlets_[i].is_waiting();
      if (is_wanted) looks.push_back({child.outputs[i].from.get(), POLLIN, 0});
    }
  }
}

void Children::serve() {
  for (Outlet& outlet : outlets_) outlet.put({});
  for (Child& child : all_) {
    for (std::size_t i = 0; i < child.outputs.size(); ++i) carry(child.outputs[i], outlets_[i]);
    note_end(child);
  }
}

// Forwards whole lines, so that those of several ranks do not mix.
void Children::carry(Child::Output& output, Outlet& to) {
  pollfd look{output.from.get(), POLLIN, 0};
  if (!output.from.is_open() || to.is_waiting() || poll(&look, 1, 0) != 1) return;
  char piece[16384];
  const ssize_t count = read(output.from.get(), piece, sizeof piece);
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (count <= 0) {
    to.put(output.line);
    output.line.clear();
    output.from.reset();
    return;
  }
  output.line.append(piece, static_cast<std::size_t>(count));
  const std::size_t end = output.line.size() > kLineMax ? output.line.size() : output.line.rfind('\n') + 1;
  to.put(std::string_view(output.line).substr(0, end));
  output.line.erase(0, end);
}

// An unreaped process keeps its PID, so nobody else can have it. With a pidfd that does not matter.
bool Children::reap(Child& child) {
  siginfo_t info{};
  const bool has_name = child.process.is_open();
  if (waitid(has_name ? P_PIDFD : P_PID, static_cast<id_t>(has_name ? child.process.get() : child.pid), &info,
             WEXITED | WNOHANG) != 0)
    return errno == ECHILD;
  if (info.si_pid != child.pid) return false;
  child.how = info;
  return true;
}

void Children::note_end(Child& child) {
  if (child.has_ended || !reap(child)) return;
  child.has_ended = true;
  ended_.push_back(static_cast<std::size_t>(&child - all_.data()));
}

const Child* Children::take_ended() {
  return told_ < ended_.size() ? &all_[ended_[told_++]] : nullptr;
}

void Children::wait_for_end_of(int pid, int milliseconds) {
  const auto child = std::ranges::find(all_, pid, &Child::pid);
  if (child == all_.end() || child->has_ended || !child->process.is_open()) return;
  pollfd look{child->process.get(), POLLIN, 0};
  poll(&look, 1, milliseconds);
  note_end(*child);
}

void Children::kill_all() {
  for (const Child& child : all_) {
    if (child.has_ended) continue;
    if (child.process.is_open()) {
      syscall(SYS_pidfd_send_signal, child.process.get(), SIGKILL, nullptr, 0);
    } else {
      kill(child.pid, SIGKILL);  // not reaped, so the PID still names this process
    }
  }
}

const siginfo_t* Children::end_of(int pid) const {
  const auto child = std::ranges::find(all_, pid, &Child::pid);
  return child != all_.end() && child->how ? &*child->how : nullptr;
}

std::string Children::how_it_ended(int pid) const {
  const siginfo_t* const end = end_of(pid);
  if (end == nullptr) return "its connection closed";
  const int status = end->si_status;
  if (end->si_code != CLD_EXITED) return fmt::format("killed by signal {} ({})", status, strsignal(status));
  return fmt::format("exit code {}", status);
}

std::optional<int> Children::exit_code_of(int pid) const {
  const siginfo_t* const end = end_of(pid);
  if (end == nullptr) return std::nullopt;
  return end->si_code == CLD_EXITED ? end->si_status : 128 + end->si_status;
}

bool Children::has_output() const {
  return std::ranges::any_of(outlets_, &Outlet::is_waiting) || std::ranges::any_of(all_, [](const Child& child) {
           return std::ranges::any_of(child.outputs, [](const auto& output) { return output.from.is_open(); });
         });
}

}  // namespace fairlead::amudp
