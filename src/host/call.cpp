#include "host/call.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <span>

#include "base/time.hpp"

namespace fairlead::host {
namespace {

constexpr auto kPatience = std::chrono::seconds(10);

std::unexpected<Error> has_ended() {
  return std::unexpected(Error{
      Status::restarted, 0, "the host engine has ended or has detached this process (the log of fairleadd says why)"});
}

}  // namespace

Result<shm::Name> socket_name(const std::string& file) {
  if (file.starts_with('/')) return shm::Name::of_file(file);
  return std::unexpected(
      Error{Status::invalid, 0, fmt::format("socket '{}' of the host engine: want an absolute path", file)});
}

PlainAddress to_plain(const base::SocketAddress& address) {
  return {.ip = address.ip, .scope = address.scope, .port = address.port};
}

base::SocketAddress from_plain(const PlainAddress& address) {
  return {.ip = address.ip, .scope = address.scope, .port = address.port};
}

Status status_from(std::uint64_t number) {
  return number <= static_cast<std::uint64_t>(Status::system) ? static_cast<Status>(number) : Status::system;
}

std::optional<Call> call_from(std::span<const std::byte> bytes) {
  Call call;
  if (bytes.size() != sizeof call) return std::nullopt;
  std::memcpy(&call, bytes.data(), sizeof call);
  return call.kind <= static_cast<std::uint32_t>(Call::Kind::peer_facts) ? std::optional(call) : std::nullopt;
}

bool send_answer(const shm::Socket& to, Answer answer, std::string_view text) {
  if (text.empty()) return to.send(std::as_bytes(std::span(&answer, 1)), {});  // without allocating
  std::vector<std::byte> bytes(sizeof answer + std::min(text.size(), kTextMost));
  std::memcpy(bytes.data(), &answer, sizeof answer);
  std::ranges::copy(std::as_bytes(std::span(text)).first(bytes.size() - sizeof answer), bytes.begin() + sizeof answer);
  return to.send(bytes, {});
}

bool send_failure(const shm::Socket& to, const Error& error) {
  return send_answer(to, {.status = static_cast<std::uint32_t>(error.status), .system_errno = error.system_errno},
                     error.message);
}

Result<Answered> make_call(const shm::Socket& to, const Call& call, std::span<const int> descriptors) {
  std::vector<std::byte> bytes(sizeof(Answer) + kTextMost);
  const auto end = base::MonotonicClock::now() + kPatience;
  for (auto late = to.receive(bytes); late && late->bytes > 0;) late = to.receive(bytes);  // answers to earlier calls
  while (!to.send(std::as_bytes(std::span(&call, 1)), descriptors)) {
    if (errno != EAGAIN || base::MonotonicClock::now() >= end) return has_ended();
    pollfd writable{to.descriptor(), POLLOUT, 0};
    ::poll(&writable, 1, 100);
  }
  for (auto now = base::MonotonicClock::now(); now < end; now = base::MonotonicClock::now()) {
    pollfd readable{to.descriptor(), POLLIN, 0};
    ::poll(&readable, 1, static_cast<int>((end - now) / std::chrono::milliseconds(1)) + 1);
    const auto letter = to.receive(bytes);
    if (!letter || shm::Socket::is_nudge(std::span(bytes).first(letter->bytes))) continue;
    if (letter->bytes < sizeof(Answer)) return has_ended();
    Answered answered;
    std::memcpy(&answered.answer, bytes.data(), sizeof(Answer));
    answered.text.assign(reinterpret_cast<const char*>(bytes.data()) + sizeof(Answer), letter->bytes - sizeof(Answer));
    const Status status = status_from(answered.answer.status);
    if (status == Status::ok) return answered;
    if (answered.text.empty()) answered.text = "the host engine has no memory for this call";
    return std::unexpected(Error{status, answered.answer.system_errno, std::move(answered.text)});
  }
  return std::unexpected(
      Error{Status::silent, 0,
            fmt::format("the host engine (process {}) has not answered for {} s: it is stopped or overloaded",
                        to.credentials().process, kPatience.count())});
}

}  // namespace fairlead::host
