#include "tools/bulkping/thread.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tools/base/describe_failure.hpp"
#include "tools/base/interrupt.hpp"
#include "tools/base/now.hpp"

namespace fairlead::tools {
namespace {

constexpr std::string_view kPong = "pong";
constexpr Duration kTakeBackAtMost = std::chrono::seconds{2};
constexpr Duration kEventLate = std::chrono::milliseconds{500};  // how long after its deadline an event may come

std::string_view name_of(RequestKind kind) {
  switch (kind) {
    case RequestKind::ping:
      return "message";
    case RequestKind::fetch:
      return "bulk to the server";
    case RequestKind::deliver:
      return "bulk to the client";
    case RequestKind::verdict:
      break;
  }
  return "verdict";
}

}  // namespace

BulkpingThread::BulkpingThread(net::Domain& domain, const BulkpingClientOptions& options, std::uint64_t client,
                               std::uint32_t thread, const std::atomic<bool>& should_stop)
    : domain_(domain),
      options_(options),
      client_(client),
      thread_(thread),
      should_stop_(should_stop),
      node_(domain, options, [this](Request verdict, const net::EndPoint&) { on_request(std::move(verdict)); }),
      waiter_(node_.machine(), !options.is_async) {}

BulkpingThread::~BulkpingThread() {
  stop();
}

Result<> BulkpingThread::start(std::string_view address) {
  if (auto started = node_.start(address); !started) return started;
  auto server = node_.machine().create_end_point(options_.server);
  if (!server) return std::unexpected(std::move(server.error()));
  server_ = std::move(*server);
  auto message = make_buffer(options_.message_size, message_ending_);
  if (!message) return std::unexpected(std::move(message.error()));
  message_ = std::move(*message);
  auto bulk = make_buffer(options_.bulk_size, bulk_ending_);
  if (!bulk) return std::unexpected(std::move(bulk.error()));
  bulk_ = std::move(*bulk);
  return {};
}

Result<std::unique_ptr<net::Buffer>> BulkpingThread::make_buffer(std::uint64_t size, std::optional<Ending>& ending) {
  auto buffer = net::Buffer::allocate(domain_, size);
  if (buffer) {
    (*buffer)->set_callback([this, &ending](const net::BufferEvent& event) {
      waiter_.update([&] { ending = Ending{event.status, event.length}; });
    });
  }
  return buffer;
}

void BulkpingThread::stop() {
  node_.stop();
}

ClientFigures BulkpingThread::figures() const {
  const std::lock_guard lock(figures_mutex_);
  return figures_;
}

Result<> BulkpingThread::run() {
  for (std::uint32_t loop = 0; loop < options_.loops && !is_stopped(); ++loop) {
    Result<> outcome = ping(loop);
    if (outcome) outcome = bulk(loop, Direction::to_server);
    if (outcome) outcome = bulk(loop, Direction::to_client);
    if (is_stopped()) return {};
    if (!outcome) return outcome;
    const std::lock_guard lock(figures_mutex_);
    figures_.loops_done = ++loops_done_;
  }
  return {};
}

Result<> BulkpingThread::ping(std::uint32_t loop) {
  Request request = request_of(RequestKind::ping, loop);
  request.rest.resize(options_.message_size - kRequestHeaderBytes - kPong.size());
  fill_pattern(request.rest, request.payload(Direction::to_server));

  const Instant start = now();
  const Instant deadline = start + options_.message_timeout;
  if (auto sent = send(request, deadline); !sent) return sent;
  auto verdict = await_verdict(request, deadline);
  if (!verdict) return std::unexpected(std::move(verdict.error()));
  const Duration round_trip = now() - start;

  const std::string text = verdict->text();
  if (!text.starts_with(kPong) || text.substr(kPong.size()) != request.text()) {
    return failure(request, Status::invalid, "the reply is not what was sent, with pong before it");
  }
  const std::lock_guard lock(figures_mutex_);
  figures_.message_round_trip.record(round_trip);
  return {};
}

Result<> BulkpingThread::bulk(std::uint32_t loop, Direction direction) {
  const bool is_to_server = direction == Direction::to_server;
  Request request = request_of(is_to_server ? RequestKind::fetch : RequestKind::deliver, loop);
  request.size = options_.bulk_size;
  // Needs no clearing: every word of the other direction's data is wrong for this one.
  if (is_to_server) fill_pattern(bulk_->segment(0), request.payload(direction));

  const Instant start = now();
  const Instant deadline = start + options_.bulk_timeout;
  waiter_.update([&] { bulk_ending_.reset(); });
  const Status added =
      is_to_server ? node_.machine().add(*bulk_, net::PassiveSend{.length = options_.bulk_size, .deadline = deadline})
                   : node_.machine().add(*bulk_, net::PassiveReceive{.deadline = deadline});
  if (added != Status::ok) return failure(request, added, "cannot add the passive buffer");
  const net::BufferDescriptor& descriptor = bulk_->descriptor();
  request.rest.assign(descriptor.begin(), descriptor.end());

  Result<> outcome = send(request, std::min(deadline, start + options_.message_timeout));
  if (outcome) outcome = await_bulk(request, deadline);
  if (!outcome || is_stopped()) take_back(*bulk_, bulk_ending_);
  if (outcome && !is_stopped() && !is_to_server) outcome = check_delivery(loop);
  return outcome;
}

Result<> BulkpingThread::await_bulk(const Request& request, Instant deadline) {
  // Start of the transfer, including the time to send the request.
  const Instant start = deadline - options_.bulk_timeout;
  // Wait beyond the deadline, so that the engine's own timeout event is the one reported.
  const auto has_failed = [&] { return verdict_ && verdict_->status != Status::ok; };
  waiter_.wait([&] { return bulk_ending_.has_value() || has_failed(); }, deadline + kEventLate,
               [&] { return is_stopped(); });
  if (is_stopped()) return {};
  const Duration taken = now() - start;
  const auto [ending, is_refused] = waiter_.look([&] { return std::pair(bulk_ending_, has_failed()); });
  if (!is_refused) {
    const Status status = ending ? ending->status : Status::timed_out;
    if (status != Status::ok) return failure(request, status, "the transfer failed");
  }

  auto verdict = await_verdict(request, deadline);
  if (!verdict) return std::unexpected(std::move(verdict.error()));
  if (request.kind == RequestKind::deliver && ending->length != request.size) {
    return failure(request, Status::invalid, fmt::format("{} bytes came instead of {}", ending->length, request.size));
  }
  bytes_moved_ += request.size;
  const std::lock_guard lock(figures_mutex_);
  const bool is_to_server = request.kind == RequestKind::fetch;
  (is_to_server ? figures_.bulk_to_server : figures_.bulk_to_client).record(taken);
  if (is_to_server) figures_.bytes_to_server += request.size;
  return {};
}

Result<> BulkpingThread::check_delivery(std::uint32_t loop) {
  const Request request = request_of(RequestKind::deliver, loop);
  const auto mismatch = check_pattern(bulk_->segment(0), request.payload(Direction::to_client));
  if (mismatch) {
    return failure(
        request, Status::invalid,
        fmt::format("corrupt data: byte {} is {:#04x} instead of {:#04x}", mismatch->offset,
                    std::to_integer<unsigned>(mismatch->found), std::to_integer<unsigned>(mismatch->expected)));
  }
  const std::lock_guard lock(figures_mutex_);
  figures_.bytes_to_client += options_.bulk_size;
  return {};
}

Result<> BulkpingThread::send(const Request& request, Instant deadline) {
  waiter_.update([&] {
    verdict_.reset();
    asked_ = request;
  });
  Status status = Status::ok;
  for (int attempt = 1; attempt <= kSendAttempts; ++attempt) {
    status = send_once(request, deadline);
    if (status == Status::ok || is_stopped()) return {};
    const Duration pause = kSendPause * (1 << (attempt - 1));
    const bool is_lasting = status == Status::invalid || status == Status::message_size || status == Status::bad_state;
    if (attempt == kSendAttempts || is_lasting || now() + pause >= deadline) break;
    waiter_.wait([] { return false; }, now() + pause, [&] { return is_stopped(); });
    const std::lock_guard lock(figures_mutex_);
    ++figures_.retries;
  }
  return failure(request, status, "the request did not get through");
}

Status BulkpingThread::send_once(const Request& request, Instant deadline) {
  const std::size_t length = encode(request, message_->segment(0));
  waiter_.update([&] { message_ending_.reset(); });
  const Status added =
      node_.machine().add(*message_, net::MessageSend{.to = server_, .length = length, .deadline = deadline});
  if (added != Status::ok) return added;
  const bool has_ended =
      waiter_.wait([&] { return message_ending_.has_value(); }, deadline + kEventLate, [&] { return is_stopped(); });
  return has_ended ? waiter_.look([&] { return message_ending_->status; }) : take_back(*message_, message_ending_);
}

Result<Request> BulkpingThread::await_verdict(const Request& request, Instant deadline) {
  const bool has_come = waiter_.wait([&] { return verdict_.has_value(); }, deadline,
                                     [&] { return is_stopped() || node_.has_lost_engine(); });
  if (is_stopped()) return request;
  if (!has_come) return failure(request, node_.has_lost_engine() ? Status::restarted : Status::timed_out, "no reply");
  Request verdict = waiter_.look([&] { return std::move(*verdict_); });
  if (verdict.status != Status::ok) {
    return failure(request, verdict.status, fmt::format("the server says '{}'", verdict.text()));
  }
  return verdict;
}

Status BulkpingThread::take_back(net::Buffer& buffer, const std::optional<Ending>& ending) {
  node_.machine().cancel(buffer);
  waiter_.wait([&] { return ending.has_value(); }, now() + kTakeBackAtMost, [] { return false; });
  return waiter_.look([&] { return ending ? ending->status : Status::timed_out; });
}

void BulkpingThread::on_request(Request verdict) {
  if (verdict.kind != RequestKind::verdict || verdict.client != client_ || verdict.thread != thread_) return;
  waiter_.update([&] {
    if (verdict.loop == asked_.loop && verdict.about == asked_.kind) verdict_ = std::move(verdict);
  });
}

bool BulkpingThread::is_stopped() const {
  return should_stop_.load(std::memory_order_relaxed) || is_interrupted();
}

std::unexpected<Error> BulkpingThread::failure(const Request& request, Status status, std::string_view what) const {
  const std::uint64_t size = request.kind == RequestKind::ping ? options_.message_size : options_.bulk_size;
  return std::unexpected(Error{
      status, 0,
      fmt::format("thread {} loop {}: {} of {} bytes with {}: {}: {}", thread_, request.loop, name_of(request.kind),
                  size, options_.server, what, describe_failure(node_.machine(), server_, status))});
}

Request BulkpingThread::request_of(RequestKind kind, std::uint32_t loop) const {
  Request request;
  request.kind = kind;
  request.thread = thread_;
  request.loop = loop;
  request.client = client_;
  return request;
}

}  // namespace fairlead::tools
