#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "base/thread.hpp"
#include "doors/amudp/library.hpp"
#include "doors/amudp/spmd.hpp"

void (*AMUDP_SPMDkillmyprocess)(int) = &_exit;

namespace fairlead::amudp {
namespace {

using namespace std::chrono_literals;

constexpr int kBeatEvery = 1000;      // ms
constexpr auto kLeaveWithin = 300ms;  // time for the application's thread to end the process itself
constexpr auto kToldWithin = 1s;      // time for the console to announce a death
constexpr auto kEndsWithin = 3s;      // time for the process to end after that

}  // namespace

std::unique_ptr<Worker> Worker::join(const JobAddress& job, std::int32_t wanted_rank, std::string& error) {
  auto connection = Connection::open(job.where);
  if (!connection) {
    error = fmt::format("no console of the job at {}:{}: {}", ip_text(job.where), ntohs(job.where.sin_port),
                        std::strerror(errno));
    return nullptr;
  }
  std::unique_ptr<Worker> worker(new Worker(std::move(*connection)));
  return worker->start(job, wanted_rank, error) ? std::move(worker) : nullptr;
}

bool Worker::start(const JobAddress& job, std::int32_t wanted_rank, std::string& error) {
  std::vector<std::byte> hello(kSecretText);
  std::memcpy(hello.data(), job.secret.data(), job.secret.size());
  const auto pid = static_cast<std::uint32_t>(getpid());
  const auto* bytes = reinterpret_cast<const std::byte*>(&pid);
  hello.insert(hello.end(), bytes, bytes + sizeof pid);
  connection_.send(Frame::hello, wanted_rank, hello);
  for (;;) {
    pollfd look{connection_.descriptor(), POLLIN, 0};
    poll(&look, 1, -1);
    const bool is_open = connection_.read_some();
    if (const auto frame = connection_.next()) {
      if (frame->head.kind != Frame::start || frame->payload.size() < sizeof info_) break;
      std::memcpy(&info_, frame->payload.data(), sizeof info_);
      rank_ = frame->head.number;
      if (info_.processes < 1 || info_.processes > AMUDP_MAX_SPMDPROCS || rank_ < 0 ||
          static_cast<std::uint32_t>(rank_) >= info_.processes || info_.depth < 1)
        break;
      const auto* text = reinterpret_cast<const char*>(frame->payload.data());
      environment_.assign(text + sizeof info_, text + frame->payload.size());
      environment_.push_back('\0');
      auto thread = base::Thread::start([this] { serve(); });
      if (thread) thread->detach();  // runs until the process ends
      if (!thread) error = std::move(thread.error().message);
      return error.empty();
    }
    if (!is_open) break;
  }
  error =
      "the console of the job did not take us: is the secret that of this job, and is its number of processes right?";
  return false;
}

const char* Worker::environment(std::string_view name) const {
  for (std::size_t at = 0; at < environment_.size();) {
    const std::string_view entry(environment_.data() + at);
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return environment_.data() + at + name.size() + 1;
    at += entry.size() + 1;
  }
  return nullptr;
}

std::stop_token Worker::begin_gather(std::span<const std::byte> part) {
  std::stop_source come;
  {
    const std::scoped_lock lock(mutex_);
    come_ = come;
  }
  gathers_.fetch_add(1, std::memory_order_relaxed);
  const std::scoped_lock lock(sending_);
  connection_.send(Frame::gather, 0, part);
  return come.get_token();
}

// The thread: receives what the console sends, and reports that this process lives.
void Worker::serve() {
  for (;;) {
    pollfd look{connection_.descriptor(), POLLIN, 0};
    if (poll(&look, 1, kBeatEvery) == 0) {
      const std::scoped_lock lock(sending_);
      connection_.send(Frame::beat, gathers_.load(std::memory_order_relaxed));
      continue;
    }
    const bool is_open = connection_.read_some();
    std::optional<int> code;
    bool is_by_wish = false;
    while (auto frame = connection_.next()) {
      if (frame->head.kind == Frame::gather) {
        std::stop_source come(std::nostopstate);
        {
          const std::scoped_lock lock(mutex_);
          gathered_ = std::move(frame->payload);
          come = come_;
        }
        come.request_stop();
      } else if (frame->head.kind == Frame::exit) {
        code = frame->head.number;
        is_by_wish = frame->payload.empty();
      }
    }
    if (!code && !is_open && !is_leaving_.load(std::memory_order_acquire)) {
      fmt::print(stderr, "{}: rank {} lost the console of its job, and ends\n", AMX_ProcessLabel, rank_);
      code = 1;
    }
    if (!code && is_open) continue;
    {
      const std::scoped_lock lock(mutex_);
      told_code_ = code.value_or(1);
      told_.notify_all();
    }
    // A rank that is leaving by itself first writes all its output. A death leaves no time for that.
    for (auto waited = 0ms; is_by_wish && waited < kLeaveWithin; waited += 5ms) {
      if (is_leaving_.load(std::memory_order_acquire)) return;
      std::this_thread::sleep_for(5ms);
    }
    if (!is_leaving_.exchange(true)) end(*told_code_);
    return;
  }
}

void Worker::exit(int code) {
  if (is_inherited()) {
    std::fflush(nullptr);
    _exit(code);  // a forked child's end does not end the job
  }
  is_leaving_.store(true, std::memory_order_release);
  {
    const std::scoped_lock lock(sending_);
    connection_.send(Frame::exit, code);
  }
  {
    std::unique_lock lock(mutex_);
    told_.wait_for(lock, 5s, [&] { return told_code_.has_value(); });
    code = told_code_.value_or(code);
  }
  std::fflush(nullptr);
  for (auto waited = 0ms; inner_console_is_done && !*inner_console_is_done && waited < 2s; waited += 1ms)
    std::this_thread::sleep_for(1ms);
  end(code);
}

bool Worker::waits_for_its_end() {
  if (is_inherited()) return false;
  {
    std::unique_lock lock(mutex_);
    if (!told_.wait_for(lock, kToldWithin, [&] { return told_code_.has_value(); })) return false;
  }
  std::this_thread::sleep_for(kEndsWithin);
  return true;
}

void Worker::end(int code) {
  if (exit_callback != nullptr) exit_callback(code);
  library().leave();  // so that late messages from the others are no errors
  if (code == 0) leave_pmix();
  AMUDP_SPMDkillmyprocess(code);
  _exit(code);
}

}  // namespace fairlead::amudp
