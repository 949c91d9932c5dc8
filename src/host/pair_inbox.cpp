#include "host/pair_inbox.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace fairlead::host {

Result<PairInbox> PairInbox::create(std::span<std::byte> memory) {
  auto requests =
      queue::Consumer::create(memory, {.element_bytes = sizeof(PairRequest), .elements = kPairRequestsMax + 1});
  if (!requests) return std::unexpected(std::move(requests.error()));
  requests->look_at_once();
  return PairInbox(std::move(*requests));
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
