#include "host/pair_inbox.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace fairlead::host {

namespace {

constexpr queue::Geometry kRing{.element_bytes = sizeof(PairRequest), .elements = kPairRequestsMax + 1};

}  // namespace

Result<PairInbox> PairInbox::create(std::span<std::byte> memory) {
  auto requests = queue::Consumer::create(memory, kRing);
  if (!requests) return std::unexpected(std::move(requests.error()));
  requests->look_at_once();
  return PairInbox(std::move(*requests));
}

Result<PairInbox> PairInbox::resume(std::span<std::byte> memory, const PairInboxState& state) {
  auto requests = queue::Consumer::resume(memory, kRing, state.consumed);
  if (!requests) return std::unexpected(std::move(requests.error()));
  requests->look_at_once();
  PairInbox inbox(std::move(*requests));
  if (state.part.empty()) return inbox;
  const std::span part(state.part);
  if (part.size() < sizeof(PairRequest) || !inbox.begin(part.data()) ||
      part.size() - sizeof(PairRequest) > inbox.wanted_)
    return std::unexpected(Error{Status::invalid, 0, "a request of queue pairs contradicts itself"});
  const auto body = part.subspan(sizeof(PairRequest));
  std::ranges::copy(body, inbox.body_.begin());
  inbox.have_ = body.size();
  return inbox;
}

PairInboxState PairInbox::save() const {
  PairInboxState state{.consumed = requests_.consumed(), .part = {}};
  if (!has_head_) return state;
  const auto head = std::as_bytes(std::span(&head_, 1));
  state.part.assign(head.begin(), head.end());
  state.part.insert(state.part.end(), body_.begin(), body_.begin() + static_cast<std::ptrdiff_t>(have_));
  return state;
}

/// Starts a request with its first element. Returns false if it announces more than is allowed.
bool PairInbox::begin(const std::byte* element) {
  std::memcpy(&head_, element, sizeof head_);
  wanted_ = std::size_t{head_.pieces} * sizeof(verbs::Sge) + head_.bytes;
  if (wanted_ > kPairRequestMost || (head_.pieces != 0 && head_.bytes != 0)) return false;
  have_ = std::min(wanted_, head_.begin.size());
  std::memcpy(body_.data(), head_.begin.data(), have_);
  return has_head_ = true;
}

std::optional<TakenRequest> PairInbox::next() {
  while (!has_head_ || have_ < wanted_) {
    const std::byte* const element = is_damaged_ ? nullptr : requests_.get();
    if (element == nullptr) return std::nullopt;
    if (!has_head_) {
      is_damaged_ = !begin(element);
      continue;
    }
    const std::size_t part = std::min(wanted_ - have_, sizeof(PairRequest));
    std::memcpy(body_.data() + have_, element, part);
    have_ += part;
  }
  has_head_ = false;
  return TakenRequest{head_, std::span(body_).first(wanted_)};
}

}  // namespace fairlead::host
