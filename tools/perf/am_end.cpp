#include "tools/perf/am_end.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>

#include "seal/hex.hpp"
#include "tools/perf/far_end.hpp"

namespace fairlead::tools {
namespace {

constexpr std::uint8_t kAsk = 1, kAnswer = 2;
constexpr std::uint64_t kKey = 2;

// A name as bytes: the IP address, the UDP port and the endpoint's number, in network order.
using NameBytes = std::array<std::byte, 22>;

NameBytes bytes_of(const am::Name& name) {
  NameBytes bytes{};
  std::ranges::transform(name.ip, bytes.begin(), [](std::uint8_t byte) { return std::byte{byte}; });
  for (std::size_t i = 0; i < 2; ++i) bytes[16 + i] = static_cast<std::byte>(name.udp_port >> (8 - 8 * i));
  for (std::size_t i = 0; i < 4; ++i) bytes[18 + i] = static_cast<std::byte>(name.endpoint >> (24 - 8 * i));
  return bytes;
}

am::Name name_of_bytes(const NameBytes& bytes) {
  am::Name name;
  std::ranges::transform(std::span(bytes).first<16>(), name.ip.begin(), std::to_integer<std::uint8_t>);
  name.udp_port =
      static_cast<std::uint16_t>(std::to_integer<unsigned>(bytes[16]) << 8 | std::to_integer<unsigned>(bytes[17]));
  for (std::size_t i = 0; i < 4; ++i)
    name.endpoint = name.endpoint << 8 | std::to_integer<std::uint32_t>(bytes[18 + i]);
  return name;
}

/// Answers requests until told to stop.
class FarActive : public PerfFarEnd {
 public:
  explicit FarActive(std::unique_ptr<AmEnd> end) : end_(std::move(end)) {}

  std::string at() const override { return end_->at(); }
  Result<> meet(std::string_view near) override { return end_->meet(near); }
  Result<PerfOutcome> play(const PerfCommand&, PerfControl& control) override {
    if (control.send(perf_message_ready())) serve_until_told(control, [&] { end_->poll(); });
    return PerfOutcome{};
  }

 private:
  std::unique_ptr<AmEnd> end_;
};

}  // namespace

Result<std::unique_ptr<AmEnd>> AmEnd::open(const PerfPlace& place, const PerfPlan& plan) {
  am::DomainSettings settings{.ip = place.host, .engine = place.engine};
  if (plan.is_unpacked) {
    for (const char* name : {"active_packed_max", "embedded_max"}) settings.engine.emplace_back(name, "0");
  }
  auto domain = am::Domain::open(settings);
  if (!domain) return std::unexpected(std::move(domain.error()));
  std::unique_ptr<AmEnd> end(new AmEnd());
  end->bundle_ = std::make_unique<am::Bundle>(*domain, am::BundleMode::sequential);
  auto added = end->bundle_->add_endpoint();
  if (!added) return std::unexpected(std::move(added.error()));
  am::Endpoint& endpoint = *(end->endpoint_ = *added);
  end->memory_.resize(plan.size_max + 64);
  endpoint.set_tag(am::Tag::of(kKey));
  endpoint.set_segment(end->memory_.data(), end->memory_.size());
  const Status asked = endpoint.set_handler(
      kAsk,
      [](void* it, am::Token& token, const am::Message&) {
        if (token.reply(kAnswer, {}) != Status::ok) static_cast<AmEnd*>(it)->has_failed_ = true;
      },
      end.get());
  const Status answered = endpoint.set_handler(
      kAnswer, [](void* it, am::Token&, const am::Message&) { ++static_cast<AmEnd*>(it)->replies_; }, end.get());
  for (const Status status : {asked, answered})
    if (status != Status::ok) return std::unexpected(Error{status, 0, "a handler cannot be set"});
  endpoint.set_error_handler(
      [](void* it, am::Endpoint&, const am::Returned&) { static_cast<AmEnd*>(it)->has_failed_ = true; }, end.get());
  const Status status = endpoint.set_depth(std::min(plan.depth, am::kDepthMax));
  if (status != Status::ok) return std::unexpected(Error{status, 0, "the depth cannot be set"});
  return end;
}

std::string AmEnd::at() const {
  return seal::to_hex(bytes_of(endpoint_->name()));
}

Result<> AmEnd::meet(std::string_view other) {
  NameBytes bytes;
  if (!seal::from_hex(other, bytes))
    return std::unexpected(Error{Status::invalid, 0, "the other side sent no name of an endpoint"});
  const Status mapped = endpoint_->map(0, name_of_bytes(bytes), kKey);
  if (mapped == Status::ok) return {};
  return std::unexpected(Error{mapped, 0, "the other end cannot be mapped"});
}

Status AmEnd::send(AmKind kind, std::uint64_t size) {
  const std::span<const std::byte> data = std::span(memory_).first(size);
  switch (kind) {
    case AmKind::brief: {
      constexpr std::array<am::Argument, am::kArgumentsMax> kWords{};
      return endpoint_->request(0, kAsk, std::span(kWords).first(std::min<std::size_t>(size / 4, kWords.size())));
    }
    case AmKind::medium:
      return endpoint_->request_medium(0, kAsk, data, {});
    case AmKind::large:
      return endpoint_->request_long(0, 0, kAsk, data, {});
  }
  return Status::invalid;
}

Result<std::unique_ptr<PerfFarEnd>> open_far_active(const PerfPlace& place, const PerfPlan& plan) {
  auto end = AmEnd::open(place, plan);
  if (!end) return std::unexpected(std::move(end.error()));
  return std::make_unique<FarActive>(std::move(*end));
}

}  // namespace fairlead::tools
