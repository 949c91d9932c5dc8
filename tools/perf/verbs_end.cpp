#include "tools/perf/verbs_end.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>

#include "base/socket_address.hpp"
#include "seal/hex.hpp"

namespace fairlead::tools {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint32_t kReceives = 1024;
constexpr std::uint32_t kSpare = 16;  // unsignalled requests whose end is not known yet

verbs::SendOpcode opcode_of(VerbsOp op) {
  switch (op) {
    case VerbsOp::send:
      return verbs::SendOpcode::send;
    case VerbsOp::write:
      return verbs::SendOpcode::write;
    case VerbsOp::read:
      return verbs::SendOpcode::read;
    case VerbsOp::fetch_add:
      return verbs::SendOpcode::fetch_add;
    case VerbsOp::compare_swap:
      break;
  }
  return verbs::SendOpcode::compare_swap;
}

}  // namespace

Result<std::unique_ptr<VerbsEnd>> VerbsEnd::open(const PerfPlace& place, const PerfPlan& plan) {
  using namespace verbs;
  const auto address = base::SocketAddress::from_ip(place.host, 0);
  if (!address) return std::unexpected(address.error());
  auto context = Context::open({.name = "perf", .address = place.host, .gid = address->ip}, {.engine = place.engine});
  if (!context) return std::unexpected(context.error());
  auto domain = ProtectionDomain::allocate(*context);
  if (!domain) return std::unexpected(domain.error());
  auto sends = CompletionQueue::create(*context, {.capacity = plan.depth + kSpare});
  if (!sends) return std::unexpected(sends.error());
  auto receives = CompletionQueue::create(*context, {.capacity = 2 * kReceives});
  if (!receives) return std::unexpected(receives.error());
  const std::uint64_t half = (plan.size_max + kPage - 1) / kPage * kPage;
  auto region = MemoryRegion::allocate(
      *domain, 2 * half, access::local_write | access::remote_write | access::remote_read | access::remote_atomic);
  if (!region) return std::unexpected(region.error());
  auto pair = QueuePair::create(
      *domain,
      {.type = QpType::rc,
       .send_queue = &*sends,
       .receive_queue = &*receives,
       .shared_receive = nullptr,
       .capacity = {
           .max_send_wr = plan.depth + kSpare, .max_recv_wr = kReceives, .max_send_sge = 1, .max_recv_sge = 1}});
  if (!pair) return std::unexpected(pair.error());
  std::unique_ptr<VerbsEnd> end(new VerbsEnd(std::move(*context), std::move(*domain), std::move(*sends),
                                             std::move(*receives), std::move(*region), std::move(*pair), half));
  // Touches all pages before the measurement.
  std::fill_n(end->memory(), 2 * half, std::byte{0});
  return end;
}

std::string VerbsEnd::at() const {
  return seal::to_hex(verbs::Invitation{pair_.address(), region_.remote()}.to_bytes());
}

Result<> VerbsEnd::meet(std::string_view other) {
  std::array<std::byte, verbs::Invitation::kBytes> bytes;
  if (!seal::from_hex(other, bytes))
    return std::unexpected(Error{Status::invalid, 0, "the other side sent no invitation"});
  const auto invitation = verbs::Invitation::from_bytes(bytes);
  if (!invitation) return std::unexpected(invitation.error());
  there_ = invitation->memory;
  if (auto connected = verbs::connect(pair_, invitation->pair); !connected) return connected;
  for (std::uint32_t i = 0; i < kReceives; ++i) {
    if (const int error = receive(); error != 0)
      return std::unexpected(Error{Status::system, error, "a receive request was refused"});
  }
  return {};
}

int VerbsEnd::request(VerbsOp op, std::uint64_t size) noexcept {
  const verbs::Sge sge = region_.sge(half_, static_cast<std::uint32_t>(size));
  return pair_.post_send({.sges = {&sge, 1},
                          .opcode = opcode_of(op),
                          .flags = verbs::send_flags::signaled,
                          .rkey = there_.rkey,
                          .remote_addr = there_.address,
                          .compare_add = 1,
                          .swap = 1});
}

int VerbsEnd::receive() noexcept {
  const verbs::Sge sge = region_.sge(0, static_cast<std::uint32_t>(half_));
  return pair_.post_receive({.sges = {&sge, 1}});
}

bool VerbsEnd::take(verbs::CompletionQueue& queue, std::uint64_t& count) noexcept {
  const int got = queue.poll(taken_);
  for (int i = 0; i < got; ++i) {
    if (taken_[static_cast<std::size_t>(i)].status != verbs::WcStatus::success) {
      failed_ = taken_[static_cast<std::size_t>(i)];
      return false;
    }
    ++count;
  }
  return got >= 0;
}

bool VerbsEnd::reap() noexcept {
  return take(sends_, ended_);
}

bool VerbsEnd::reap_receives() noexcept {
  const std::uint64_t before = received_;
  if (!take(receives_, received_)) return false;
  for (std::uint64_t i = before; i < received_; ++i) {
    if (receive() != 0) return false;
  }
  return true;
}

Error VerbsEnd::failure() const {
  return {
      Status::system, 0,
      fmt::format("the measurement failed: a request ended with status {}: {}", static_cast<unsigned>(failed_.status),
                  verbs::explain(static_cast<verbs::Cause>(failed_.vendor_err)))};
}

std::uint8_t VerbsEnd::arrived(std::uint64_t size) const noexcept {
  auto& last = *reinterpret_cast<std::uint8_t*>(memory() + size - 1);
  return std::atomic_ref(last).load(std::memory_order_acquire);
}

void VerbsEnd::stamp(std::uint64_t size, std::uint8_t number) noexcept {
  memory()[half_ + size - 1] = std::byte{number};
}

}  // namespace fairlead::tools
