// Operations submitted to the host engine.

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "host/host_core.hpp"

namespace fairlead::host {
namespace {

std::uint64_t bytes_of(std::span<const iovec> memory) {
  std::uint64_t bytes = 0;
  for (const iovec& piece : memory) bytes += piece.iov_len;
  return bytes;
}

void gather(std::span<const iovec> memory, std::uint64_t length, std::byte* to) {
  for (const iovec& piece : memory) {
    const std::uint64_t part = std::min<std::uint64_t>(piece.iov_len, length);
    if (part > 0) std::memcpy(to, piece.iov_base, part);
    to += part;
    length -= part;
  }
}

/// Returns the offset of an operation's memory in the shared memory; nullopt if it is elsewhere.
std::optional<std::uint64_t> find_shared(const ClientMemory& shared, std::span<const iovec> memory,
                                         std::uint64_t length) {
  if (length == 0) return 0;
  if (memory[0].iov_len < length) return std::nullopt;
  return shared.find({static_cast<const std::byte*>(memory[0].iov_base), length});
}

}  // namespace

Status HostCore::post_receive(engine::PortHandle port, const engine::Receive& receive,
                              engine::OperationHandle& operation) {
  std::uint64_t number = 0;
  const Status status = post(port, receive, false, operation, number);
  // If the host engine ends meanwhile, the operation's event reports it.
  if (status == Status::ok) host_.wait_until_served(number);
  return status;
}

Status HostCore::post(engine::PortHandle port, const engine::Receive& receive, bool is_spare,
                      engine::OperationHandle& operation, std::uint64_t& number) {
  const Submission submission{.port = port,
                              .memory = receive.memory,
                              .length = bytes_of(receive.memory),
                              .cookie = receive.cookie,
                              .takes_bytes = true,
                              .is_spare = is_spare};
  const Request request{.size_min = receive.size_min,
                        .messages_max = receive.messages_max,
                        .kind = static_cast<std::uint8_t>(Request::Kind::receive)};
  return submit(submission, request, operation, &number);
}

Status HostCore::send(engine::PortHandle port, const engine::Send& send, engine::OperationHandle& operation) {
  if (send.part.length > message_size_max_) return Status::message_size;
  const Submission submission{.port = port,
                              .memory = send.part.memory,
                              .length = send.part.length,
                              .cookie = send.part.cookie,
                              .gives_bytes = true};
  const Request request{.to = to_plain(send.to.engine),
                        .to_port = send.to.port,
                        .kind = static_cast<std::uint8_t>(Request::Kind::send),
                        .flags = send.is_confirmed ? Request::kIsConfirmed : std::uint8_t{0}};
  return submit(submission, request, operation);
}

std::size_t HostCore::send_all(engine::PortHandle port, const engine::RemotePort& to,
                               std::span<const link::SendPart> parts, std::span<engine::OperationHandle> operations,
                               Status& status) {
  std::size_t sent = 0;
  for (status = Status::ok; sent < parts.size(); ++sent) {
    status = send(port, {.to = to, .part = parts[sent]}, operations[sent]);
    if (status != Status::ok) break;
  }
  return sent;
}

Status HostCore::put(engine::PortHandle port, const engine::Transfer& transfer, engine::OperationHandle& operation) {
  return this->transfer(port, Request::Kind::put, transfer, operation);
}

Status HostCore::get(engine::PortHandle port, const engine::Transfer& transfer, engine::OperationHandle& operation) {
  return this->transfer(port, Request::Kind::get, transfer, operation);
}

Status HostCore::transfer(engine::PortHandle port, Request::Kind kind, const engine::Transfer& transfer,
                          engine::OperationHandle& operation) {
  const Submission submission{.port = port,
                              .memory = transfer.memory,
                              .length = transfer.length,
                              .cookie = transfer.cookie,
                              .gives_bytes = kind == Request::Kind::put,
                              .takes_bytes = kind == Request::Kind::get};
  const Request request{.epoch = transfer.target_epoch,
                        .key = transfer.key,
                        .to = to_plain(transfer.target.engine),
                        .to_port = transfer.target.port,
                        .kind = static_cast<std::uint8_t>(kind)};
  return submit(submission, request, operation);
}

Status HostCore::expose(engine::PortHandle port, const engine::Exposure& exposure, engine::OperationHandle& operation,
                        std::uint64_t& key) {
  const Submission submission{.port = port,
                              .memory = exposure.memory,
                              .length = exposure.length,
                              .cookie = exposure.cookie,
                              .gives_bytes = !exposure.is_writable,
                              .takes_bytes = exposure.is_writable};
  const Request request{.kind = static_cast<std::uint8_t>(Request::Kind::expose),
                        .flags = exposure.is_writable ? Request::kIsWritable : std::uint8_t{0}};
  const auto has_key = [&] {
    const std::scoped_lock lock(mutex_);
    return find(port).has_key();
  };
  for (;;) {
    if (!has_key()) {
      const Status given = ask_and_wait(port, {.kind = static_cast<std::uint8_t>(Request::Kind::give_keys)});
      if (given != Status::ok) return given;
    }
    const Status status = submit(submission, request, operation, nullptr, &key);
    if (status == Status::again) wait_until_all_are_served();  // the ring was full
    if (status != Status::again && status != Status::not_available) return status;
  }
}

/// Fills in the common fields and submits the request. On failure nothing was taken. `key` gets the next key of the
/// port's shelf; `not_available` if another thread has used the last one.
Status HostCore::submit(const Submission& submission, Request request, engine::OperationHandle& operation,
                        std::uint64_t* number, std::uint64_t* key) {
  if (submission.length > bytes_of(submission.memory)) return Status::invalid;
  if (submission.length == 0 && !submission.may_be_empty) return Status::invalid;
  std::byte* block = nullptr;
  const auto shared = find_shared(host_.memory(), submission.memory, submission.length);
  if (!shared) {
    block = host_.memory().take_block(submission.length);
    if (block == nullptr) return Status::no_memory;
    if (submission.gives_bytes) {
      gather(submission.memory, submission.length, block);
      counters_.copied_bytes.fetch_add(submission.length, std::memory_order_relaxed);
    }
  }
  std::unique_lock lock(mutex_);
  const bool has_key = key == nullptr || find(submission.port).has_key();
  if (key != nullptr && has_key) *key = find(submission.port).next_key();
  ClientOperation* const made = has_key ? operations_.take() : nullptr;
  Status status = !has_key ? Status::not_available : made != nullptr ? Status::ok : Status::no_memory;
  if (made != nullptr) {
    made->cookie = submission.cookie;
    made->memory = submission.memory;
    made->length = submission.length;
    made->block = block;
    made->port = static_cast<std::uint16_t>(submission.port.slot);
    made->kind = static_cast<Request::Kind>(request.kind);
    made->takes_bytes = submission.takes_bytes;
    made->is_spare = submission.is_spare;
    request.operation = ClientOperations::name_of(*made);
    request.offset = shared ? *shared : static_cast<std::uint64_t>(block - host_.memory().at(0));
    request.length = submission.length;
    request.port = made->port;
    operation = ClientOperations::handle_of(*made);
    operation.at = base::MonotonicClock::now();  // before the operation can end, in another process
    status = push(request);
    if (status != Status::ok) operations_.release(*made);
    if (status == Status::ok && key != nullptr) find(submission.port).use_key();
    if (number != nullptr) *number = requests_->produced();
  }
  lock.unlock();
  if (status == Status::ok) {
    host_.wake();
  } else if (block != nullptr) {
    host_.memory().give_back_block(block, submission.length);
  }
  return status;
}

/// The caller holds the lock.
Status HostCore::push(const Request& request) {
  if (has_ended()) return Status::restarted;
  std::byte* const element = requests_->pnext();
  if (element == nullptr) return Status::again;
  std::memcpy(element, &request, sizeof request);
  requests_->put();
  counters_.requests.fetch_add(1, std::memory_order_relaxed);
  return Status::ok;
}

// When it returns false, the operation's bytes are in place, even if its event has not been taken. The owner may use
// the memory again.
bool HostCore::cancel(engine::PortHandle port, engine::OperationHandle operation) {
  const Request request{.operation = ClientOperations::name_of(operation),
                        .kind = static_cast<std::uint8_t>(Request::Kind::cancel)};
  {
    const std::scoped_lock lock(mutex_);
    if (operations_.find(request.operation) == nullptr) return false;
  }
  if (ask_and_wait(port, request) == Status::ok) return true;
  find(port).drain(
      [&](const Event& event, engine::Completion& completion) { return take_event(port, event, completion); });
  return false;
}

}  // namespace fairlead::host
