#include "tools/bulkping/server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "tools/base/byte_size.hpp"
#include "tools/base/describe_failure.hpp"
#include "tools/base/now.hpp"

namespace fairlead::tools {
namespace {

constexpr std::uint64_t kLinesToldMax = 20;

}  // namespace

BulkpingServer::BulkpingServer(net::Domain& domain, const BulkpingServerOptions& options)
    : domain_(domain),
      options_(options),
      node_(domain, options,
            [this](Request request, const net::EndPoint& sender) { on_request(std::move(request), sender); }),
      bulk_(domain, options.buffers, options.memory, [this](net::Buffer& buffer) {
        buffer.set_callback([this](const net::BufferEvent& event) { on_bulk_end(event); });
      }) {}

BulkpingServer::~BulkpingServer() {
  stop();
}

Result<> BulkpingServer::start(std::string_view address) {
  if (auto started = node_.start(address); !started) return started;
  const std::lock_guard lock(mutex_);
  for (std::uint32_t i = 0; i < options_.buffers; ++i) {
    auto buffer = net::Buffer::allocate(domain_, options_.message_size);
    if (!buffer) return std::unexpected(std::move(buffer.error()));
    (*buffer)->set_callback([this](const net::BufferEvent& event) { on_reply_end(event); });
    reply_idle_.push_back(buffer->get());
    reply_buffers_.push_back(std::move(*buffer));
  }
  return {};
}

void BulkpingServer::serve(Duration time) {
  Instant until = now() + time;
  {
    const std::lock_guard lock(mutex_);
    start_jobs();
    for (const Job& job : waiting_) {
      if (job.due > now()) until = std::min(until, job.due);
    }
  }
  if (options_.is_async) {
    std::this_thread::sleep_until(until);
    return;
  }
  while (now() < until) {
    const auto delivered = machine().deliver_all();
    if (delivered && *delivered > 0) continue;
    if (!machine().wait(until)) std::this_thread::sleep_until(until);
  }
}

void BulkpingServer::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    waiting_.clear();
  }
  node_.stop();
}

ServerFigures BulkpingServer::figures() const {
  const std::lock_guard lock(mutex_);
  ServerFigures figures = figures_;
  figures.malformed = node_.malformed_requests();
  return figures;
}

void BulkpingServer::on_request(Request request, const net::EndPoint& sender) {
  const std::lock_guard lock(mutex_);
  if (is_stopping_) return;
  const bool is_bulk = request.kind != RequestKind::ping;
  Job job{std::move(request), sender, is_bulk ? now() + options_.delay : now()};
  if (job.request.kind == RequestKind::verdict) {
    ++figures_.refusals;
    return;
  }
  if (waiting_.size() >= kJobsMax) {
    ++figures_.refusals;  // no reply either: replies wait in the same queue
    return;
  }
  if (is_bulk && (job.request.size == 0 || job.request.size > std::min(options_.bulk_size_max, options_.memory))) {
    ++figures_.refusals;
    reply(job, Status::too_big,
          fmt::format("bulk of {} bytes, this server takes 1 to {}: start it with a larger --bulk-size",
                      job.request.size, byte_size_text(std::min(options_.bulk_size_max, options_.memory))));
  } else {
    waiting_.push_back(std::move(job));
  }
  start_jobs();
}

void BulkpingServer::start_jobs() {
  if (is_stopping_) return;
  // Starting a job may append a reply to the queue: the loop reaches it, too.
  for (std::size_t i = 0; i < waiting_.size();) {
    Job job = std::move(waiting_[i]);
    if (job.due <= now() && try_start(job)) {
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      waiting_[i++] = std::move(job);
    }
  }
}

bool BulkpingServer::try_start(Job& job) {
  switch (job.request.kind) {
    case RequestKind::ping: {
      const bool is_right = !check_pattern(job.request.rest, job.request.payload(Direction::to_server));
      ++(is_right ? figures_.pings : figures_.corrupt);
      reply(job, is_right ? Status::ok : Status::invalid, is_right ? "pong" + job.request.text() : "corrupt message");
      return true;
    }
    case RequestKind::verdict:
      return try_reply(job);
    case RequestKind::fetch:
    case RequestKind::deliver:
      return try_transfer(job);
  }
  return true;
}

bool BulkpingServer::try_reply(Job& job) {
  if (reply_idle_.empty()) return false;
  net::Buffer& buffer = *reply_idle_.back();
  const std::size_t length = encode(job.request, buffer.segment(0));
  const Status added = node_.machine().add(
      buffer, net::MessageSend{.to = job.client, .length = length, .deadline = now() + options_.message_timeout});
  if (added == Status::ok) {
    reply_idle_.pop_back();
    under_way_.insert_or_assign(&buffer, std::move(job));
  } else {
    again_or_give_up(std::move(job), added);
  }
  return true;
}

bool BulkpingServer::try_transfer(Job& job) {
  net::Buffer* buffer = bulk_.acquire(job.request.size);
  if (buffer == nullptr) return false;
  const Instant deadline = now() + options_.bulk_timeout;
  Status added;
  if (job.request.kind == RequestKind::fetch) {
    added = node_.machine().add(*buffer, net::ActiveReceive{.descriptor = job.request.rest, .deadline = deadline});
  } else {
    fill_pattern(buffer->segment(0).first(job.request.size), job.request.payload(Direction::to_client));
    added = node_.machine().add(
        *buffer, net::ActiveSend{.descriptor = job.request.rest, .length = job.request.size, .deadline = deadline});
  }
  if (added == Status::ok) {
    under_way_.insert_or_assign(buffer, std::move(job));
    return true;
  }
  bulk_.release(*buffer);
  if (added == Status::again || added == Status::no_memory) {
    again_or_give_up(std::move(job), added);
  } else {
    ++figures_.refusals;
    reply(job, added, fmt::format("the descriptor is refused: {}", to_string(added)));
  }
  return true;
}

void BulkpingServer::again_or_give_up(Job job, Status status) {
  if (++job.attempts < kSendAttempts && waiting_.size() < kJobsMax) {
    ++figures_.retries;
    job.due = now() + kSendPause * (1 << (job.attempts - 1));
    waiting_.push_back(std::move(job));
    return;
  }
  ++figures_.failures;
  tell(
      fmt::format("cannot answer {}: {}", job.client.address(), describe_failure(node_.machine(), job.client, status)));
}

void BulkpingServer::reply(const Job& job, Status status, std::string_view text) {
  Request verdict = job.request.answer(status, text.substr(0, options_.message_size - kRequestHeaderBytes));
  waiting_.push_back({std::move(verdict), job.client, now()});
}

void BulkpingServer::on_reply_end(const net::BufferEvent& event) {
  const std::lock_guard lock(mutex_);
  auto ended = under_way_.extract(&event.buffer);
  reply_idle_.push_back(&event.buffer);
  if (is_stopping_ || ended.empty()) return;
  if (event.status != Status::ok) again_or_give_up(std::move(ended.mapped()), event.status);
  start_jobs();
}

void BulkpingServer::on_bulk_end(const net::BufferEvent& event) {
  const std::lock_guard lock(mutex_);
  auto ended = under_way_.extract(&event.buffer);
  if (!ended.empty() && !is_stopping_) {
    const std::uint64_t length = event.queue == net::QueueKind::active_bulk_receive ? event.length : 0;
    finish_transfer(ended.mapped(), event.queue, event.status, event.buffer.bytes(0, length));
  }
  bulk_.release(event.buffer);
  start_jobs();
}

void BulkpingServer::finish_transfer(const Job& job, net::QueueKind queue, Status status,
                                     std::span<const std::byte> payload) {
  if (status != Status::ok) {
    ++figures_.failures;
    tell(fmt::format("{} with {} failed: {}", to_string(queue), job.client.address(),
                     describe_failure(node_.machine(), job.client, status)));
    reply(job, status, fmt::format("{}: {}", to_string(queue), to_string(status)));
  } else if (queue == net::QueueKind::active_bulk_send) {
    ++figures_.deliveries;
    figures_.bytes_delivered += job.request.size;
    reply(job, Status::ok, "delivered");
  } else if (const auto mismatch = check_pattern(payload, job.request.payload(Direction::to_server));
             mismatch || payload.size() != job.request.size) {
    ++figures_.corrupt;
    const std::uint64_t offset = mismatch ? mismatch->offset : payload.size();
    tell(fmt::format("corrupt data from {}: thread {} loop {} byte {} of {}", job.client.address(), job.request.thread,
                     job.request.loop, offset, job.request.size));
    reply(job, Status::invalid, fmt::format("corrupt data at byte {} of {}", offset, job.request.size));
  } else {
    ++figures_.fetches;
    figures_.bytes_fetched += payload.size();
    reply(job, Status::ok, "fetched and verified");
  }
}

void BulkpingServer::tell(std::string line) {
  if (options_.is_quiet || (lines_told_ >= kLinesToldMax && !options_.is_verbose)) return;
  ++lines_told_;
  fmt::print(stderr, "fairlead: {}{}\n", line,
             lines_told_ == kLinesToldMax && !options_.is_verbose
                 ? "; further ones are only counted (--verbose prints all)"
                 : "");
}

}  // namespace fairlead::tools
