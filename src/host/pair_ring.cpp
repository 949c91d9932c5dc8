#include "host/pair_ring.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>

namespace fairlead::host {
namespace {

constexpr auto kPatienceForRoom = std::chrono::seconds(2);

}  // namespace

Result<> PairRing::attach() {
  auto producer = queue::Producer::attach(segment_);
  if (!producer) return std::unexpected(std::move(producer.error()));
  requests_.emplace(std::move(*producer));
  return {};
}

bool PairRing::wait_for_room(std::size_t elements) {
  if (requests_->room() >= elements) [[likely]]
    return !host_.has_ended();
  const auto end = base::MonotonicClock::now() + kPatienceForRoom;
  while (requests_->room() < elements) {
    host_.wake();
    if (host_.look_for_end() || base::MonotonicClock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

bool PairRing::push(PairRequest request, std::span<const std::byte> first, std::span<const std::byte> second) {
  const std::size_t bytes = first.size() + second.size();
  const std::size_t rest = bytes - std::min(bytes, PairRequest::kBytesHere);
  const std::size_t elements = 1 + (rest + sizeof(PairRequest) - 1) / sizeof(PairRequest);
  if (!wait_for_room(elements)) return false;
  const auto take = [&](std::span<std::byte> to) {
    for (auto* part : {&first, &second}) {
      const std::size_t length = std::min(part->size(), to.size());
      if (length > 0) std::memcpy(to.data(), part->data(), length);
      *part = part->subspan(length);
      to = to.subspan(length);
    }
  };
  take(request.begin);
  std::memcpy(requests_->pnext(), &request, sizeof request);
  requests_->put();
  for (std::size_t i = 1; i < elements; ++i) {
    std::byte* const element = requests_->pnext();
    take({element, sizeof(PairRequest)});
    requests_->put();
  }
  ++pushed_;
  return true;
}

}  // namespace fairlead::host
